"""What a strategy decides: which parents and which operators the next generation has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eureka_agent.records import Attempt, Operator


@dataclass(frozen=True)
class ProposalPlan:
    """What one proposal is to be made from."""

    operator: Operator
    parents: tuple[str, ...] = ()
    """Attempt ids. The first one is what the proposal starts from: the better one of a crossover,
    but in a tree its node."""


class Strategy(Protocol):
    """Chooses parents and operators from finished attempts: pure functions, so that a resumed
    search goes the way of an unbroken one."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """`samples` plans for this iteration.

        `finished` holds every attempt of earlier iterations, failures and revisions included, as it
        is known where this one is designed; and where all of this iteration's proposals have failed
        and it is tried again, those: their samples count on, so place `p` of round `r` is sample `r
        * samples + p`.
        """
        ...

    def to_tune(self, place: int, finished: Sequence[Attempt], samples: int) -> Attempt | None:
        """The trained attempt whose constants an optimiser may choose in this place of a
        generation, 0 to `samples` - 1; None: none there."""
        ...
