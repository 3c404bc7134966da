"""Figures of a model's agreement with a metric, against some by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from outcomes import make_outcome

from benchmarks.judge_agreement import correlation, counted, overall
from eureka_agent.feedback_records import Comparison, Given, Judgement
from eureka_agent.records import Attempt, Operator, Proposal, Stage
from eureka_agent.rewards import CodeReward


def attempt(name: str, fitness: float) -> Attempt:
    outcome = make_outcome(fitness).model_copy(update={"fitness_std": 1.0})
    return Attempt(
        id=name,
        iteration=0,
        sample=ord(name) - ord("a"),
        revision=0,
        proposal=Proposal(
            reward=CodeReward(source="", author="x"), reasoning="", operator=Operator.FRESH
        ),
        stage=Stage.TRAINED,
        seed=0,
        outcome=outcome.model_copy(update={"evaluation_episodes": 4}),
    )


def run_of(*comparisons: tuple[str, str, int | None]) -> Any:
    """A run of four attempts whose mean fitness has a standard error of 1 / √4."""
    attempts = [attempt(name, value) for name, value in zip("abcd", (0.0, 1.4, 3, 6), strict=True)]
    told = Judgement(
        sub_goals=("stands", "hops"),
        comparisons=tuple(
            Comparison.model_validate({"first": one, "second": other, "grade": grade})
            for one, other, grade in comparisons
        ),
    )
    feedback = (Given(number=1, time="", who="openai/eye", feedback=told),)
    archive = SimpleNamespace(attempts=lambda: attempts, state=SimpleNamespace(feedback=feedback))
    return SimpleNamespace(
        archive=archive,
        settings=SimpleNamespace(env="hopper"),
        description=SimpleNamespace(task="run"),
    )


def test_only_comparisons_that_the_metric_decides_are_counted() -> None:
    # two standard errors of a difference are 2 × √(½² + ½²) = 1.41: a and b are not told apart
    found = counted(
        run_of(("a", "b", 1), ("d", "a", 1), ("b", "d", 1), ("c", "a", 0), ("c", "d", None))
    )
    assert (found["comparisons"], found["told_apart"]) == (5, 4)
    assert (found["agree"], found["no_winner"]) == (1, 2)
    assert found["model"] == "openai/eye"
    assert found["sub_goals"] == ["stands", "hops"]


def test_ranks_are_compared_over_attempts_and_shares_over_comparisons() -> None:
    # ranks 1 2 3 4 against 1 2 4 3: 1 − 6 × (0 + 0 + 1 + 1) / (4 × 15) = 0.8
    assert correlation([(0.0, -1.0), (1.4, 0.0), (3.0, 7.0), (6.0, 2.0)]) == pytest.approx(0.8)
    assert correlation([(1.0, 1.0), (1.0, 2.0)]) is None
    rows = [
        {"rank_correlation": 0.8, "told_apart": 4, "agree": 3},
        {"rank_correlation": None, "told_apart": 1, "agree": 0},
    ]
    figures = overall(rows)
    assert figures["rank_correlation"] == {"mean": 0.8, "from": 0.8, "to": 0.8}
    # of two tasks, both drawn alike in a half of the draws: 0 / 2, 3 / 5 or 6 / 8
    assert figures["share_that_agrees"] == {"mean": 0.6, "from": 0.0, "to": 0.75}
