"""Helpers for the attempts that a strategy gets."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import Attempt, Stage

NOT_ENDED = (Stage.PROPOSED, Stage.ACCEPTED)
"""Stages of attempts without a result."""


def last_revisions(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The last revision of each sample, ordered by iteration and sample."""
    last: dict[tuple[int, int], Attempt] = {}
    for attempt in sorted(attempts, key=lambda each: (each.iteration, each.sample, each.revision)):
        last[attempt.iteration, attempt.sample] = attempt
    return list(last.values())
