"""Greedy evolution from the best attempts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.interface import ProposalPlan


class Greedy:
    """Eureka's evolution (Ma et al. 2023): every generation starts from the best attempt.

    Operators improve it, change its structure, retune its weights, cross it with the runner-up, or
    try something else. When an operator comes again in a generation it starts from the runner-up,
    if that is nearly as good, so that one lucky parent does not decide the search.
    """

    _OPERATORS = (
        Operator.IMPROVE,
        Operator.RETUNE_WEIGHTS,
        Operator.MUTATE_STRUCTURE,
        Operator.CROSSOVER,
        Operator.IMPROVE,
        Operator.RETUNE_WEIGHTS,
        Operator.MUTATE_STRUCTURE,
        Operator.DIFFERENT,
    )

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals at first, then operators in rotation on the best attempt."""
        best = ranked(finished)
        if not best:
            return [ProposalPlan(Operator.FRESH)] * samples
        second = _close_runner_up(best)
        plans = []
        for sample in range(samples):
            operator = self._OPERATORS[sample % len(self._OPERATORS)]
            if operator is Operator.CROSSOVER and len(best) < 2:
                operator = Operator.MUTATE_STRUCTURE
            again = operator in self._OPERATORS[: sample % len(self._OPERATORS)]
            parents = (
                (best[0].id, best[1].id)
                if operator is Operator.CROSSOVER
                else (second if again else best[0].id,)
            )
            plans.append(ProposalPlan(operator, parents))
        return plans


def _close_runner_up(best: Sequence[Attempt]) -> str:
    """The second best if its fitness is nearer to the best than to the median, else the best."""
    fitness = [attempt.fitness for attempt in best if attempt.fitness is not None]
    if len(fitness) < 2 or fitness[1] <= (fitness[0] + statistics.median(fitness)) / 2:
        return best[0].id
    return best[1].id


class BestOfN:
    """Independent samples without any learning, the baseline that evolution has to beat."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals only."""
        return [ProposalPlan(Operator.FRESH)] * samples
