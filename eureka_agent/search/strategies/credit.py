"""Credit of the numeric optimiser: it takes part in a generation by its success so far, compared
with the models'.

An optimiser that tunes a reward's named constants (`Operator.TUNE_WEIGHTS`) costs no tokens, but a
training, so it must earn its samples. A success is a child that is better than its parents, not a
good one: later generations are better anyway, and the scale of a fitness is the task's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eureka_agent.designer.source_tools import number_constants
from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.history import NOT_ENDED, last_revisions
from eureka_agent.search.strategies.interface import ProposalPlan, Strategy

CHANGING = (
    Operator.RETUNE_WEIGHTS,
    Operator.IMPROVE,
    Operator.MUTATE_STRUCTURE,
    Operator.CROSSOVER,
    Operator.REASON_OVER_PATH,
)
"""Operators on existing rewards. Tuning is compared with them and replaces them. The others look
for something new."""


@dataclass(frozen=True)
class Record:
    """Wins and losses of children against their parents."""

    wins: int
    losses: int

    @property
    def rate(self) -> float:
        """The expected share of wins: the mean of Beta(1 + wins, 1 + losses)."""
        return (1 + self.wins) / (2 + self.wins + self.losses)


def record_of(operators: Sequence[Operator], finished: Sequence[Attempt]) -> Record:
    """Wins and losses of these operators' children against their best parent. A child without
    fitness has lost; a child without a known parent's fitness does not count."""
    fitness = {attempt.id: attempt.fitness for attempt in finished}
    wins = losses = 0
    for attempt in last_revisions(finished):
        if attempt.proposal.operator not in operators or attempt.stage in NOT_ENDED:
            continue
        parents = [
            value for value in map(fitness.get, attempt.proposal.parents) if value is not None
        ]
        if attempt.fitness is None:
            losses += 1
        elif parents:
            won = attempt.fitness > max(parents)
            wins, losses = wins + won, losses + (not won)
    return Record(wins, losses)


def places_earned(iteration: int, finished: Sequence[Attempt], samples: int) -> int:
    """Number of this generation's samples for tuning.

    It is 0 in the first generation and 1 in the first try, then tuning's part of both rates of
    success. It is at most half of the generation and at most one more than all tries so far, so
    that one lucky child does not decide a generation. If it comes to 0, every other generation has
    one.
    """
    most = samples // 2
    if iteration == 0 or most == 0:
        return 0
    tried = sum(
        attempt.proposal.operator is Operator.TUNE_WEIGHTS for attempt in last_revisions(finished)
    )
    tuned, designed = record_of((Operator.TUNE_WEIGHTS,), finished), record_of(CHANGING, finished)
    share = tuned.rate / (tuned.rate + designed.rate)
    earned = min(int(samples * share + 0.5), most, tried + 1)
    return earned or iteration % 2


def places_to_give(plans: Sequence[ProposalPlan]) -> list[int]:
    """The samples that tuning may take, in this order.

    Plans that retune weights come first, then the last one of the most frequent operator, so that
    one of each kind stays as long as possible.
    """
    places: dict[Operator, list[int]] = {}
    for place, plan in enumerate(plans):
        if plan.operator in CHANGING:
            places.setdefault(plan.operator, []).append(place)
    order = places.pop(Operator.RETUNE_WEIGHTS, [])
    counts = Counter({operator: len(each) for operator, each in places.items()})
    while counts.total():
        operator = counts.most_common(1)[0][0]  # of equals the first planned
        order.append(places[operator].pop())
        counts[operator] -= 1
    return order


class WithTuning:
    """A strategy that gives an optimiser the samples that it has earned."""

    def __init__(
        self,
        strategy: Strategy,
        tunable: Callable[[str, Sequence[str]], bool] = lambda source, trained: bool(
            number_constants(source)
        ),
    ) -> None:
        """`tunable` gets a reward's source and the sources of all trained ones, and tells if its
        constants can be tuned."""
        self._strategy = strategy
        self._tunable = tunable

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """The strategy's plans, some replaced by tuning."""
        plans = list(self._strategy.plan(iteration, finished, samples))
        left = places_earned(iteration, finished, samples)
        for place in places_to_give(plans):
            if left == 0:
                break
            parent = self.to_tune(place, finished, samples)
            if parent is not None:
                plans[place] = ProposalPlan(Operator.TUNE_WEIGHTS, (parent.id,))
                left -= 1
        return plans

    def to_tune(self, place: int, finished: Sequence[Attempt], samples: int) -> Attempt | None:
        """The strategy's parent for tuning, if it can be tuned."""
        parent = self._strategy.to_tune(place, finished, samples)
        if parent is None:
            return None
        known = (attempt for attempt in finished if attempt.fitness is not None)
        trained = [attempt.proposal.reward.source for attempt in known]
        return parent if self._tunable(parent.proposal.reward.source, trained) else None
