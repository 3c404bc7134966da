"""Best of N: independent samples."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.interface import ProposalPlan


class BestOfN:
    """Independent samples without any learning, the baseline that evolution has to beat."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals only."""
        return [ProposalPlan(Operator.FRESH)] * samples
