"""Properties of every strategy, in searches that nobody trains: with failures, revisions, stopped
trainings and further rounds."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from planned_attempts import invented_search, planned

from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.search.strategies import STRATEGIES, ProposalPlan, Strategy, strategy_of
from eureka_agent.settings import SearchSettings

ALL: dict[str, Strategy] = {name: kind() for name, kind in STRATEGIES.items()}
SINGLE = (
    Operator.IMPROVE,
    Operator.MUTATE_STRUCTURE,
    Operator.RETUNE_WEIGHTS,
    Operator.DIFFERENT,
)

over_all = pytest.mark.parametrize("name", ALL)


@pytest.mark.parametrize("name", ["greedy", "best-of-n", "islands"])
def test_the_settings_know_every_strategy(name: str) -> None:
    settings = SearchSettings.model_validate({"strategy": name})
    assert type(strategy_of(settings)) is STRATEGIES[name]


class Checked:
    """A strategy whose every plan is checked against what was known to it."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self.seen: list[tuple[int, ProposalPlan]] = []

    def plan(self, iteration: int, finished: list[Attempt], samples: int) -> list[ProposalPlan]:
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
def test_nothing_trained_means_fresh_proposals_in_any_generation(name: str) -> None:
    failed = [
        planned(0, sample, stage=stage)
        for sample, stage in enumerate(Stage)
        if stage is not Stage.TRAINED
    ]
    unscored = planned(0, 9, stage=Stage.TRAINED)  # trained, and its policy could not be scored
    assert ALL[name].plan(3, [*failed, unscored], 6) == [ProposalPlan(Operator.FRESH)] * 6


@over_all
def test_a_single_trained_attempt_is_not_crossed_with_itself(name: str) -> None:
    history = [planned(0, 0), planned(0, 1, 4.0), planned(0, 2)]
    for iteration in range(1, 8):
        plans = ALL[name].plan(iteration, history, 16)
        assert Operator.CROSSOVER not in {plan.operator for plan in plans}
        assert {plan.parents for plan in plans} <= {(), ("0-1",)}


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
    names: dict[str, type[Strategy]] = {}
    exec(example[1], names)
    checked = Checked(names["Pairs"]())
    invented_search(checked, 1, iterations=5, samples=6)  # type: ignore[arg-type]
    assert Operator.CROSSOVER in {plan.operator for _, plan in checked.seen}
