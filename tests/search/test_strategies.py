"""Properties of every strategy, in searches that nobody trains: with failures, revisions, stopped
trainings and further rounds."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from planned_attempts import invented_search, planned
from rung_trials import RUNGS, Jittery
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.search import strategies

ALL: dict[str, strategies.Strategy] = {name: kind() for name, kind in strategies.STRATEGIES.items()}
SINGLE = {*Operator} - {Operator.FRESH, Operator.CROSSOVER, Operator.EDIT, Operator.RANDOMISE}

over_all = pytest.mark.parametrize("name", ALL)


class Checked:
    """A strategy whose every plan is checked against what was known to it."""

    def __init__(self, strategy: strategies.Strategy) -> None:
        self._strategy = strategy
        self.seen: list[tuple[int, strategies.ProposalPlan]] = []

    def plan(
        self, iteration: int, finished: list[Attempt], samples: int
    ) -> list[strategies.ProposalPlan]:
        before = list(finished)
        plans = self._strategy.plan(iteration, finished, samples)
        assert finished == before  # nothing is sorted in place
        assert len(plans) == samples
        assert plans == self._strategy.plan(iteration, finished, samples)
        shuffled = random.Random(iteration).sample(finished, len(finished))
        assert plans == self._strategy.plan(iteration, shuffled, samples)
        usable = {
            attempt.id
            for attempt in finished
            if attempt.stage is Stage.TRAINED and attempt.fitness is not None
        }
        for plan in plans:
            assert set(plan.parents) <= usable
            assert len(set(plan.parents)) == len(plan.parents)
            if plan.operator is Operator.FRESH:
                assert plan.parents == ()
            elif plan.operator is Operator.CROSSOVER:
                assert len(plan.parents) == 2
            else:
                assert plan.operator in SINGLE
                assert len(plan.parents) == 1
        if not usable:
            assert {plan.operator for plan in plans} == {Operator.FRESH}
        self.seen += [(iteration, plan) for plan in plans]
        return plans


@over_all
@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 8, 16, 17])
def test_plans_start_from_trained_attempts_alone_and_are_a_function_of_them(
    name: str, samples: int
) -> None:
    for seed in range(4):
        checked = Checked(ALL[name])
        history = invented_search(checked, seed, iterations=7, samples=samples)  # type: ignore[arg-type]
        operators = {plan.operator for iteration, plan in checked.seen if iteration > 0}
        if name == "best-of-n":
            assert operators == {Operator.FRESH}
        assert len(history) >= len(checked.seen)


@over_all
def test_negative_fitness_is_as_good_as_any(name: str) -> None:
    """Ranks decide: the same attempts with all fitness shifted below zero and scaled are planned
    alike."""
    history = invented_search(ALL[name], 5, iterations=4, samples=8)
    outcomes = {each.id: each.outcome for each in history}
    shifted = []
    for attempt in history:
        outcome = outcomes[attempt.id]
        if outcome is not None and outcome.fitness is not None:
            outcome = outcome.model_copy(update={"fitness": 0.01 * outcome.fitness - 1000.0})
        shifted.append(attempt.model_copy(update={"outcome": outcome}))
    assert ALL[name].plan(4, shifted, 8) == ALL[name].plan(4, history, 8)


def test_the_example_of_the_page_on_strategies_is_one() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
    example = re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    names: dict[str, type[strategies.Strategy]] = {}
    exec(example[1], names)
    checked = Checked(names["Pairs"]())
    invented_search(checked, 1, iterations=5, samples=6)  # type: ignore[arg-type]
    assert Operator.CROSSOVER in {plan.operator for _, plan in checked.seen}


def test_greedy_starts_from_the_best_of_all_generations_not_of_the_last(
    make_attempt: Callable[..., Attempt],
) -> None:
    history = [make_attempt(0, 0, 9.0), make_attempt(0, 1, 3.0), make_attempt(1, 0, 4.0)]
    plans = strategies.Greedy().plan(2, history, 8)
    assert {plan.parents[0] for plan in plans} == {"1-01"}
    crossed = [plan.parents for plan in plans if plan.operator is Operator.CROSSOVER]
    assert crossed == [("1-01", "2-01")]


def test_greedy_comes_round_again_from_a_runner_up_that_is_nearly_as_good(
    make_attempt: Callable[..., Attempt],
) -> None:
    # the median of 9, 8, 3, 2 is 5.5: 8 is above (9 + 5.5) / 2 = 7.25
    fitness = (3.0, 9.0, 8.0, 2.0)
    history = [make_attempt(0, place, each) for place, each in enumerate(fitness)]
    plans = [(plan.operator, plan.parents) for plan in strategies.Greedy().plan(1, history, 8)]
    first, second = "1-02", "1-03"
    assert plans == [
        (Operator.IMPROVE, (first,)),
        (Operator.RETUNE_WEIGHTS, (first,)),
        (Operator.MUTATE_STRUCTURE, (first,)),
        (Operator.CROSSOVER, (first, second)),
        (Operator.IMPROVE, (second,)),
        (Operator.RETUNE_WEIGHTS, (second,)),
        (Operator.MUTATE_STRUCTURE, (second,)),
        (Operator.DIFFERENT, (first,)),
    ]
    history[2] = make_attempt(0, 2, 7.0)  # the median is 5: 7 is not above (9 + 5) / 2
    assert {plan.parents[0] for plan in strategies.Greedy().plan(1, history, 8)} == {first}


def test_the_number_of_islands_follows_from_the_samples() -> None:
    counts = [strategies.island_count(samples) for samples in (1, 3, 4, 7, 8, 15, 16, 64)]
    assert counts == [1, 1, 2, 2, 2, 2, 4, 4]


FIRST = [planned(0, sample, fitness) for sample, fitness in enumerate((1.0, 8.0, 3.0, 6.0))]
"""Four samples on two islands: 0-0 and 0-2 (the better one), 0-1 (the better one) and 0-3."""


def test_the_second_generation_by_hand() -> None:
    assert strategies.Islands().plan(1, FIRST, 4) == [
        strategies.ProposalPlan(Operator.IMPROVE, ("0-2",)),  # turn 0: the best
        strategies.ProposalPlan(
            Operator.CROSSOVER, ("0-1", "0-3")
        ),  # turn 0, with the operators one further on: the best two
        strategies.ProposalPlan(
            Operator.CROSSOVER, ("0-2", "0-0")
        ),  # turn 1: the second best, crossed with the best
        strategies.ProposalPlan(Operator.MUTATE_STRUCTURE, ("0-3",)),  # turn 1: the second best
    ]


def test_an_island_evolves_whoever_is_better_elsewhere() -> None:
    second = [planned(1, place, each) for place, each in enumerate((2.0, 20.0, 4.0, 30.0))]
    history = [*FIRST, *second]
    # the first island's members, best first: 1-2, 0-2, 1-0, 0-0; turns 2 and 3 take the best and
    # the third
    assert strategies.Islands().plan(2, history, 4)[::2] == [
        strategies.ProposalPlan(Operator.MUTATE_STRUCTURE, ("1-2",)),
        strategies.ProposalPlan(Operator.RETUNE_WEIGHTS, ("1-0",)),
    ]


def islands_of(plan: strategies.ProposalPlan, samples: int) -> set[int]:
    return {strategies.island_of(int(parent.split("-")[1]), samples) for parent in plan.parents}


@pytest.mark.parametrize("samples", [4, 8, 9, 16])
def test_migration_happens_when_it_is_due_and_from_the_neighbour_alone(samples: int) -> None:
    strategy, count = strategies.Islands(), strategies.island_count(samples)
    history = invented_search(strategy, seed=0, iterations=9, samples=samples, failing=0.0)
    for iteration in range(1, 9):
        known = [attempt for attempt in history if attempt.iteration < iteration]
        plans = strategy.plan(iteration, known, samples)
        abroad = {
            place
            for place, plan in enumerate(plans)
            if islands_of(plan, samples) - {strategies.island_of(place, samples)}
        }
        assert abroad == (set(range(count)) if iteration % strategies.MIGRATION == 0 else set())
        for place in abroad:
            plan = plans[place]
            assert plan.operator is Operator.CROSSOVER
            assert islands_of(plan, samples) == {place, (place - 1) % count}
            fitness = {attempt.id: attempt.fitness or 0.0 for attempt in known}
            for (
                parent
            ) in plan.parents:  # each is the best of its island, and the better one comes first
                island = strategies.island_of(int(parent.split("-")[1]), samples)
                assert fitness[parent] == max(
                    value
                    for name, value in fitness.items()
                    if strategies.island_of(int(name.split("-")[1]), samples) == island
                )
            assert fitness[plan.parents[0]] >= fitness[plan.parents[1]]


def test_an_empty_island_starts_afresh_and_is_settled_from_its_neighbour_when_migration_is_due() -> (
    None
):
    only_one = [planned(0, 0, 5.0), planned(0, 1), planned(0, 2, 4.0), planned(0, 3)]
    for iteration in (1, 2, 4, 5):
        plans = strategies.Islands().plan(iteration, only_one, 4)
        assert [plans[1], plans[3]] == [strategies.ProposalPlan(Operator.FRESH)] * 2
        assert plans[0].operator is not Operator.FRESH
    plans = strategies.Islands().plan(strategies.MIGRATION, only_one, 4)
    assert plans[1] == strategies.ProposalPlan(Operator.IMPROVE, ("0-0",))
    assert plans[3] == strategies.ProposalPlan(Operator.FRESH)
    assert islands_of(plans[0], 4) == {0}  # its neighbour has nothing to offer


def test_attempts_of_a_second_round_belong_to_the_islands_of_their_places() -> None:
    second_round = [planned(0, sample) for sample in range(4)]
    second_round += [planned(0, 4, 1.0), planned(0, 5, 2.0), planned(0, 6, 3.0), planned(0, 7, 4.0)]
    plans = strategies.Islands().plan(1, second_round, 4)
    assert [plan.parents for plan in plans] == [("0-6",), ("0-7", "0-5"), ("0-6", "0-4"), ("0-5",)]


MakeRun = Callable[..., Run]

SETTINGS = {**RUNGS, "iterations": 5, "samples": 4, "confirm": 1}
SCRIPT = [reward(weight) for weight in range(1, 21)]
DRAWN = random.Random(4)
AT_THE_END = {source: round(DRAWN.uniform(0, 10), 2) for source in SCRIPT}
AT_RUNGS = {source: round(fitness + DRAWN.gauss(0, 2), 2) for source, fitness in AT_THE_END.items()}
Row = tuple[str, str, float | None, Operator, tuple[str, ...]]


async def searched(
    run: Run, strategy: strategies.Strategy, jitter: int, fuse: Fuse | None = None
) -> list[Row]:
    known = len(run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], fuse=fuse)
    await ScriptedSearch(
        run, designer, Jittery(jitter, AT_THE_END, fuse, AT_RUNGS), fuse=fuse, strategy=strategy
    ).engine.generations()
    return rows_of(run)


def rows_of(run: Run) -> list[Row]:
    return [
        (each.id, each.stage.value, each.fitness, each.proposal.operator, each.proposal.parents)
        for each in run.archive.attempts()
    ]


@pytest.mark.parametrize("name", ["islands", "greedy"])
async def test_the_same_attempts_whatever_the_timing(make_run: MakeRun, name: str) -> None:
    results = [
        await searched(make_run(**SETTINGS), strategies.STRATEGIES[name](), jitter)
        for jitter in range(3)
    ]
    assert len(results[0]) == 20
    assert results[1] == results[0]
    assert results[2] == results[0]


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        *[("islands", "propose", 18), ("islands", "rung", 9)],
        *[("greedy", "rung", 25), ("greedy", "trained", 6)],
    ],
)
async def test_killed_and_resumed_it_goes_the_same_way(
    make_run: MakeRun, name: str, kind: str, number: int
) -> None:
    unbroken = await searched(make_run(**SETTINGS), strategies.STRATEGIES[name](), 0)
    run = make_run(**SETTINGS)
    killed = False
    try:
        await searched(run, strategies.STRATEGIES[name](), 1, Fuse(kind, number))
    except* Killed:
        killed = True
    assert killed
    assert rows_of(run) != unbroken
    assert await searched(open_run(run.folder), strategies.STRATEGIES[name](), 2) == unbroken
