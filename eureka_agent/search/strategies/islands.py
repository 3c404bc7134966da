"""Islands: small populations that evolve apart and sometimes exchange their best (after REvolve
2025).

Nothing is stored. An attempt's island follows from its sample, and an island's members from the
attempts.
"""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.interface import ProposalPlan

MIGRATION = 3
"""Generations between migrations. Each island needs time for progress of its own."""


def island_count(samples: int) -> int:
    """Number of islands: 4 with at least four samples each, 2 with at least two, else 1. More
    samples help an island more than another island does."""
    if samples >= 16:
        return 4
    return 2 if samples >= 4 else 1


def island_of(sample: int, samples: int) -> int:
    """The island of a sample, the same in further rounds of a generation."""
    return sample % samples % island_count(samples)


class Islands:
    """Each island evolves its members by mutation and crossover, and sometimes gets its neighbour's
    best as a parent.

    Every second choice of a parent takes the best member, every fourth the second best, every
    eighth the third, and so on: by rank, since the scale of a fitness is the task's.
    """

    _OPERATORS = (
        Operator.IMPROVE,
        Operator.CROSSOVER,
        Operator.MUTATE_STRUCTURE,
        Operator.RETUNE_WEIGHTS,
        Operator.CROSSOVER,
    )
    """An odd number, so that every operator meets every rank of parents."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals on an island without a trained member, else its next operators and
        parents."""
        count = island_count(samples)
        members = [self._members(island, finished, samples) for island in range(count)]
        migration = count > 1 and iteration > 0 and iteration % MIGRATION == 0
        plans = []
        for place in range(samples):
            island = island_of(place, samples)
            mine, neighbour = members[island], members[island - 1]
            if migration and place < count and neighbour:
                plans.append(self._welcome(mine[:1], neighbour[0], ranked(finished)))
                continue
            places = len(range(island, samples, count))
            turn = max(iteration - 1, 0) * places + place // count
            plans.append(
                self._evolve(mine, turn, self._OPERATORS[(turn + island) % len(self._OPERATORS)])
            )
        return plans

    def _members(self, island: int, finished: Sequence[Attempt], samples: int) -> list[Attempt]:
        """The members of an island with a fitness, best first."""
        return [
            attempt for attempt in ranked(finished) if island_of(attempt.sample, samples) == island
        ]

    def _welcome(
        self, best: Sequence[Attempt], migrant: Attempt, order: Sequence[Attempt]
    ) -> ProposalPlan:
        """A crossover of the island's best with the migrant, or the migrant alone."""
        if not best:
            return ProposalPlan(Operator.IMPROVE, (migrant.id,))
        pair = {best[0].id, migrant.id}
        return ProposalPlan(
            Operator.CROSSOVER, tuple(attempt.id for attempt in order if attempt.id in pair)
        )

    def _evolve(self, members: Sequence[Attempt], turn: int, operator: Operator) -> ProposalPlan:
        """A plan from the island's own members. `turn` counts the island's choices."""
        if not members:
            return ProposalPlan(Operator.FRESH)
        rank = min(rank_of_turn(turn), len(members) - 1)
        if operator is not Operator.CROSSOVER:
            return ProposalPlan(operator, (members[rank].id,))
        if len(members) < 2:
            return ProposalPlan(Operator.MUTATE_STRUCTURE, (members[0].id,))
        return ProposalPlan(operator, (members[0].id, members[max(rank, 1)].id))


def rank_of_turn(turn: int) -> int:
    """The rank (0 is best) of the parent of choice number `turn`: 0 1 0 2 0 1 0 3 …, the exponent
    of 2 in `turn` + 1."""
    number = turn + 1
    return (number & -number).bit_length() - 1
