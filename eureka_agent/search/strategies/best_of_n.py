"""Best of N: samples that know nothing of each other."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.interface import ProposalPlan


class BestOfN:
    """Independent samples, none of which learns from another: the baseline that any evolution has
    to beat."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals, whatever has been found."""
        return [ProposalPlan(Operator.FRESH)] * samples

    def to_tune(self, place: int, finished: Sequence[Attempt], samples: int) -> Attempt | None:
        """Nothing: a tuned reward is made from another."""
        return None
