"""Interface of strategies: operators and parents of the next generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eureka_agent.records import Attempt, Operator, Stage


@dataclass(frozen=True)
class ProposalPlan:
    """Operator and parents of one proposal."""

    operator: Operator
    parents: tuple[str, ...] = ()
    """Attempt ids. The proposal starts from the first: the better one of a crossover, the node in a
    tree."""


class Strategy(Protocol):
    """Chooses parents and operators by pure functions of finished attempts, so that a resumed
    search repeats the decisions."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """`samples` plans for this iteration.

        `finished` holds every attempt of earlier iterations as known at planning, failures and
        revisions included. When all proposals of an iteration have failed and it gets a further
        round, it holds those too; sample `p` of round `r` has the number `r * samples + p`.
        """
        ...


NOT_ENDED = (Stage.PROPOSED, Stage.ACCEPTED)
"""Stages of attempts without a result."""


def last_revisions(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The last revision of each sample, ordered by iteration and sample."""
    last: dict[tuple[int, int], Attempt] = {}
    for attempt in sorted(attempts, key=lambda each: (each.iteration, each.sample, each.revision)):
        last[attempt.iteration, attempt.sample] = attempt
    return list(last.values())
