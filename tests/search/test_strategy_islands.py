from __future__ import annotations

import pytest
from planned_attempts import invented_search, planned

from eureka_agent.records import Operator
from eureka_agent.search.strategies import (
    MIGRATION,
    Islands,
    ProposalPlan,
    island_count,
    island_of,
    rank_of_turn,
)


def test_the_number_of_islands_follows_from_the_samples() -> None:
    assert [island_count(samples) for samples in (1, 3, 4, 7, 8, 15, 16, 64)] == [
        1,
        1,
        2,
        2,
        2,
        2,
        4,
        4,
    ]


def test_a_place_stays_on_its_island_in_further_rounds() -> None:
    # five samples, two islands: places 0 2 4 and 1 3; the second round's samples are 5 to 9
    assert [island_of(sample, 5) for sample in range(10)] == [0, 1, 0, 1, 0] * 2
    assert [island_of(sample, 3) for sample in range(3)] == [0, 0, 0]


def test_every_second_choice_takes_the_best_every_fourth_the_second_best() -> None:
    ranks = [rank_of_turn(turn) for turn in range(64)]
    assert ranks[:8] == [0, 1, 0, 2, 0, 1, 0, 3]
    assert [ranks.count(rank) for rank in range(4)] == [32, 16, 8, 4]


FIRST = [planned(0, sample, fitness) for sample, fitness in enumerate((1.0, 8.0, 3.0, 6.0))]
"""Four samples on two islands: 0-0 and 0-2 (the better one), 0-1 (the better one) and 0-3."""


def test_the_second_generation_by_hand() -> None:
    assert Islands().plan(1, FIRST, 4) == [
        ProposalPlan(Operator.IMPROVE, ("0-2",)),  # turn 0: the best
        ProposalPlan(
            Operator.CROSSOVER, ("0-1", "0-3")
        ),  # turn 0, with the operators one further on: the best two
        ProposalPlan(
            Operator.CROSSOVER, ("0-2", "0-0")
        ),  # turn 1: the second best, crossed with the best
        ProposalPlan(Operator.MUTATE_STRUCTURE, ("0-3",)),  # turn 1: the second best
    ]


def test_an_island_evolves_whoever_is_better_elsewhere() -> None:
    history = [
        *FIRST,
        planned(1, 0, 2.0),
        planned(1, 1, 20.0),
        planned(1, 2, 4.0),
        planned(1, 3, 30.0),
    ]
    # the first island's members, best first: 1-2, 0-2, 1-0, 0-0; turns 2 and 3 take the best and
    # the third
    assert Islands().plan(2, history, 4)[::2] == [
        ProposalPlan(Operator.MUTATE_STRUCTURE, ("1-2",)),
        ProposalPlan(Operator.RETUNE_WEIGHTS, ("1-0",)),
    ]


def test_a_third_best_is_crossed_with_the_best() -> None:
    history = [
        *FIRST,
        planned(1, 0, 2.0),
        planned(1, 2, 4.0),
    ]  # the first island: 1-2, 0-2, 1-0, 0-0
    # the seventh generation's second place is turn 11, the twelfth choice: rank 2; its first place
    # is the migrant's
    assert Islands().plan(6, history, 4)[2] == ProposalPlan(Operator.CROSSOVER, ("1-2", "1-0"))


def islands_of(plan: ProposalPlan, samples: int) -> set[int]:
    return {island_of(int(parent.split("-")[1]), samples) for parent in plan.parents}


@pytest.mark.parametrize("samples", [4, 8, 9, 16])
def test_migration_happens_when_it_is_due_and_from_the_neighbour_alone(samples: int) -> None:
    strategy, count = Islands(), island_count(samples)
    history = invented_search(strategy, seed=0, iterations=9, samples=samples, failing=0.0)
    for iteration in range(1, 9):
        known = [attempt for attempt in history if attempt.iteration < iteration]
        plans = strategy.plan(iteration, known, samples)
        abroad = {
            place
            for place, plan in enumerate(plans)
            if islands_of(plan, samples) - {island_of(place, samples)}
        }
        assert abroad == (set(range(count)) if iteration % MIGRATION == 0 else set())
        for place in abroad:
            plan = plans[place]
            assert plan.operator is Operator.CROSSOVER
            assert islands_of(plan, samples) == {place, (place - 1) % count}
            fitness = {attempt.id: attempt.fitness or 0.0 for attempt in known}
            for (
                parent
            ) in plan.parents:  # each is the best of its island, and the better one comes first
                island = island_of(int(parent.split("-")[1]), samples)
                assert fitness[parent] == max(
                    value
                    for name, value in fitness.items()
                    if island_of(int(name.split("-")[1]), samples) == island
                )
            assert fitness[plan.parents[0]] >= fitness[plan.parents[1]]


def test_a_single_island_has_nobody_to_exchange_with() -> None:
    history = [planned(0, sample, float(sample)) for sample in range(3)]
    plans = Islands().plan(MIGRATION, history, 3)
    assert all(plan.operator is not Operator.FRESH for plan in plans)
    assert len({plan.parents for plan in plans}) == 3


def test_an_empty_island_starts_afresh_and_is_settled_from_its_neighbour_when_migration_is_due() -> (
    None
):
    only_one = [planned(0, 0, 5.0), planned(0, 1), planned(0, 2, 4.0), planned(0, 3)]
    for iteration in (1, 2, 4, 5):
        plans = Islands().plan(iteration, only_one, 4)
        assert [plans[1], plans[3]] == [ProposalPlan(Operator.FRESH)] * 2
        assert plans[0].operator is not Operator.FRESH
    plans = Islands().plan(MIGRATION, only_one, 4)
    assert plans[1] == ProposalPlan(Operator.IMPROVE, ("0-0",))
    assert plans[3] == ProposalPlan(Operator.FRESH)
    assert islands_of(plans[0], 4) == {0}  # its neighbour has nothing to offer


def test_attempts_of_a_second_round_belong_to_the_islands_of_their_places() -> None:
    second_round = [planned(0, sample) for sample in range(4)]
    second_round += [planned(0, 4, 1.0), planned(0, 5, 2.0), planned(0, 6, 3.0), planned(0, 7, 4.0)]
    plans = Islands().plan(1, second_round, 4)
    assert [plan.parents for plan in plans] == [("0-6",), ("0-7", "0-5"), ("0-6", "0-4"), ("0-5",)]
