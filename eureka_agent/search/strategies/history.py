"""Reading the attempts that a strategy is given."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import Attempt, Stage

NOT_ENDED = (Stage.PROPOSED, Stage.ACCEPTED)
"""Stages of attempts whose worth nobody knows yet."""


def last_revisions(attempts: Sequence[Attempt]) -> list[Attempt]:
    """What became of each sample, in the order of iteration and sample: a proposal that was mended
    after a rejection counts once."""
    last: dict[tuple[int, int], Attempt] = {}
    for attempt in sorted(attempts, key=lambda each: (each.iteration, each.sample, each.revision)):
        last[attempt.iteration, attempt.sample] = attempt
    return list(last.values())
