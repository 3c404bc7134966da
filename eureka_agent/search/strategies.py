"""Strategies: pure functions of the attempts that give the next operators and parents."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eureka_agent.designer.source_tools import entry_function, parameter_names
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator
from eureka_agent.rewards import OBSERVATION_FUNCTION
from eureka_agent.settings import SearchSettings, strategy_name
from eureka_agent.task import PREVIOUS_PREFIX


@dataclass(frozen=True)
class ProposalPlan:
    """Operator and parents of one proposal."""

    operator: Operator
    parents: tuple[str, ...] = ()
    """Attempt ids. The proposal starts from the first, the better one of a crossover."""


class Strategy(Protocol):
    """Chooses parents and operators."""

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """`samples` plans for this iteration.

        `finished` holds every attempt of earlier iterations as known at planning, failures and
        revisions included. When all proposals of an iteration have failed and it gets a further
        round, it holds those too; sample `p` of round `r` has the number `r * samples + p`.
        """
        ...


def last_revisions(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The last revision of each sample, ordered by iteration and sample."""
    last: dict[tuple[int, int], Attempt] = {}
    for attempt in sorted(attempts, key=lambda each: (each.iteration, each.sample, each.revision)):
        last[attempt.iteration, attempt.sample] = attempt
    return list(last.values())


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


MIGRATION = 3
"""Generations between migrations. Each island needs time for progress of its own."""


def island_count(samples: int) -> int:
    """Number of islands: 4 with at least four samples each, 2 with at least two, else 1."""
    if samples >= 16:
        return 4
    return 2 if samples >= 4 else 1


def island_of(sample: int, samples: int) -> int:
    """The island of a sample, the same in further rounds of a generation."""
    return sample % samples % island_count(samples)


class Islands:
    """Small populations that evolve apart by mutation and crossover, and sometimes get their
    neighbour's best as a parent (after REvolve 2025). Nothing is stored: an attempt's island
    follows from its sample.

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
        """Fresh proposals on an empty island, else its next operators and parents."""
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
    """The rank (0 is best) of the parent of choice `turn`: 0 1 0 2 0 1 0 3 …"""
    number = turn + 1
    return (number & -number).bit_length() - 1


class MapElites:
    """MAP-Elites (Mouret and Clune 2015), as LIMEN uses it for observations: the best attempt of
    each niche is a parent in turn, so that other sizes and kinds are not crowded out."""

    _OPERATORS = (
        Operator.IMPROVE,
        Operator.CROSSOVER,
        Operator.MUTATE_STRUCTURE,
        Operator.DIFFERENT,
    )

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals at first, then every niche's best in turn."""
        best: dict[tuple[int, bool], Attempt] = {}
        for attempt in ranked(finished):
            best.setdefault(niche_of(attempt), attempt)
        elites, plans = list(best.values()), []
        for sample in range(samples if elites else 0):
            turn = max(iteration - 1, 0) * samples + sample
            parent, other = (elites[(turn + more) % len(elites)] for more in (0, 1))
            # another operator for the same niche in each round of the niches
            operator = self._OPERATORS[(turn + turn // len(elites)) % len(self._OPERATORS)]
            if operator is Operator.CROSSOVER and len(elites) > 1:
                pair = (each.id for each in elites if each in (parent, other))
                plans.append(ProposalPlan(operator, tuple(pair)))
                continue
            alone = Operator.MUTATE_STRUCTURE if operator is Operator.CROSSOVER else operator
            plans.append(ProposalPlan(alone, (parent.id,)))
        return plans or [ProposalPlan(Operator.FRESH)] * samples


_NICHE_WIDTH, _MOST_SIZE = 4, 3


def niche_of(attempt: Attempt) -> tuple[int, bool]:
    """Size and kind of what an attempt designs: how many variables its observation reads, in steps
    of four up to twelve, and whether it calculates with them; without an observation how many its
    reward reads, and whether it reads values of the step before."""
    reward = attempt.proposal.reward
    if not reward.designs_observation:
        names = parameter_names(reward.source)
        kind = any(name.startswith(PREVIOUS_PREFIX) for name in names)
    else:
        names = parameter_names(reward.source, OBSERVATION_FUNCTION)
        function = entry_function(reward.source, OBSERVATION_FUNCTION)
        nodes = [] if function is None else ast.walk(function)
        kind = any(isinstance(node, ast.BinOp) for node in nodes)
    return min((len(names) - 1) // _NICHE_WIDTH, _MOST_SIZE), kind


STRATEGIES: dict[str, type[Strategy]] = {
    "greedy": Greedy,
    "best-of-n": BestOfN,
    "islands": Islands,
    "map-elites": MapElites,
}
"""By the names that `--strategy` takes."""


def strategy_of(settings: SearchSettings, *, refined: bool = False) -> Strategy:
    """The strategy of a search. `refined`: of one to which a person has said something."""
    return STRATEGIES[strategy_name(settings, refined=refined)]()
