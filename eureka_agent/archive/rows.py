"""An attempt as a row of the archive: a projection of the journal, with what lists show."""

from __future__ import annotations

from eureka_agent.records import Attempt


def attempt_row(attempt: Attempt) -> tuple[object, ...]:
    """An attempt's row: what lists show of it."""
    return (
        attempt.id,
        attempt.iteration,
        attempt.sample,
        attempt.revision,
        attempt.proposal.operator.value,
        " ".join(attempt.proposal.parents),
        attempt.stage.value,
        attempt.reason,
        attempt.fitness,
        len(attempt.fitness_per_seed),
        attempt.retries,
        attempt.created,
    )
