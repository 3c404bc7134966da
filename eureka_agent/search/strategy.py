"""Strategies: which parents and which operators the next generation has. A pure function of what is finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator


@dataclass(frozen=True)
class ProposalPlan:
    """What one proposal is to be made from."""

    operator: Operator
    parents: tuple[str, ...] = ()
    """Attempt ids, best first."""


class Strategy(Protocol):
    """Chooses parents and operators from finished attempts."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """`samples` plans for this iteration. `finished` holds every attempt of earlier iterations, failures included."""
        ...


class Greedy:
    """Eureka's evolution (Ma et al. 2023): every generation starts from the best attempt so far and what was learned from it.

    Beside improving the best one, part of a generation changes its structure, retunes its weights, crosses it with the runner-up, and tries
    something else, so that one lucky parent does not decide the whole search.
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
        """Fresh proposals at first; then operators in rotation on the best attempt so far."""
        best = ranked(finished)
        if not best:
            return [ProposalPlan(Operator.FRESH)] * samples
        plans = []
        for sample in range(samples):
            operator = self._OPERATORS[sample % len(self._OPERATORS)]
            if operator is Operator.CROSSOVER and len(best) < 2:
                operator = Operator.MUTATE_STRUCTURE
            parents = (best[0].id, best[1].id) if operator is Operator.CROSSOVER else (best[0].id,)
            plans.append(ProposalPlan(operator, parents))
        return plans


class BestOfN:
    """Independent samples, none of which learns from another: the baseline that any evolution has to beat."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals, whatever has been found."""
        return [ProposalPlan(Operator.FRESH)] * samples


STRATEGIES: dict[str, type[Greedy] | type[BestOfN]] = {"greedy": Greedy, "best-of-n": BestOfN}
