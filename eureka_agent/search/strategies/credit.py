"""Whether a numeric optimiser takes part in a generation: by what it has made of its parents so
far, beside what the models have.

An optimiser that chooses a reward's named constants (`Operator.TUNE_WEIGHTS`) costs no tokens, but
a training like any other proposal, so it has to earn its places. Credit goes by whether a child is
better than what it was made from, not by how good it is: later generations are better whoever made
them, and fitness has the task's own scale.
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
"""What a designer makes of rewards that are there: what tuning is compared with, and takes the
places of. The other operators look for something new."""


@dataclass(frozen=True)
class Record:
    """How often children were better than their parents."""

    wins: int
    losses: int

    @property
    def rate(self) -> float:
        """The share of wins to be expected: the mean of Beta(1 + wins, 1 + losses)."""
        return (1 + self.wins) / (2 + self.wins + self.losses)


def record_of(operators: Sequence[Operator], finished: Sequence[Attempt]) -> Record:
    """Wins and losses of these operators' children, each against the best of its parents; what came
    to no fitness has lost.

    Nothing is said of a child whose parents' fitness is not known any more.
    """
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
    """How many of this generation's places tuning is given.

    None in the first generation, one when it has not been tried; then its share of both rates of
    success, as a part of the generation. At most half, and at most one more than it has had in all,
    so that a single lucky child does not decide a generation. Where that comes to none, one in
    every other generation.
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
    """The places of a generation that tuning may take, in the order in which it takes them.

    First those that would retune weights, which is what it does too; then the last one of whatever
    operator the generation has most of, so that one of each kind stays as long as possible.
    """
    places: dict[Operator, list[int]] = {}
    for place, plan in enumerate(plans):
        if plan.operator in CHANGING:
            places.setdefault(plan.operator, []).append(place)
    order = places.pop(Operator.RETUNE_WEIGHTS, [])
    counts = Counter({operator: len(each) for operator, each in places.items()})
    while counts.total():
        operator = counts.most_common(1)[0][0]  # the first one planned of equals
        order.append(places[operator].pop())
        counts[operator] -= 1
    return order


class WithTuning:
    """A strategy that leaves some of its places to an optimiser, as many as that has earned."""

    def __init__(
        self,
        strategy: Strategy,
        tunable: Callable[[str, Sequence[str]], bool] = lambda source, trained: bool(
            number_constants(source)
        ),
    ) -> None:
        """`tunable`: whether a reward's source has constants that can be chosen, by what is known
        from the sources of all that were trained."""
        self._strategy = strategy
        self._tunable = tunable

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """The strategy's plans, some of them replaced."""
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
        """Parent that the strategy would have tuned, where that can be done."""
        parent = self._strategy.to_tune(place, finished, samples)
        trained = [
            attempt.proposal.reward.source for attempt in finished if attempt.fitness is not None
        ]
        return (
            parent
            if parent is not None and self._tunable(parent.proposal.reward.source, trained)
            else None
        )
