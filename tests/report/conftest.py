"""A small run as data: two iterations, one rejection, one failure, three trained attempts,
baselines."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from jumper import JUMPER, SOURCE, make_point

from eureka_agent.records import (
    Attempt,
    CurvePoint,
    Diagnosis,
    DiagnosisFinding,
    Finding,
    Operator,
    Outcome,
    Proposal,
    Repeat,
    RunStatus,
    Score,
    Stage,
    TaskDescription,
    Verdict,
)
from eureka_agent.report.run_report import RunCost, RunReport
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import SearchSettings


def make_attempt(
    identifier: str,
    stage: Stage,
    fitness: float | None = None,
    *,
    operator: Operator = Operator.FRESH,
    parents: tuple[str, ...] = (),
    reason: str = "",
    finding: str = "",
    retries: int = 0,
) -> Attempt:
    iteration, sample = (int(part) - 1 for part in identifier.split("-")[:2])
    verdict = None
    if stage is Stage.REJECTED:
        verdict = Verdict(
            findings=(Finding(code="C102", severity="error", line=3, message=reason),),
            steps_run=("parse",),
        )
    outcome = diagnosis = None
    if fitness is not None:
        outcome = Outcome(
            env_steps=1000,
            seconds=1.0,
            checkpoints=(),
            best_checkpoint=0,
            training_fitness=fitness,
            fitness=fitness,
        )
        findings = (
            (DiagnosisFinding(code="dominant-component", message=finding, advice="scale it down"),)
            if finding
            else ()
        )
        diagnosis = Diagnosis(
            fitness=fitness,
            fitness_values=(None, fitness / 2, fitness),
            episode_length_values=(None, 90.0, 120.0),
            components=(),
            findings=findings,
            text=f"reflection on {identifier}",
        )
    return Attempt(
        id=identifier,
        iteration=iteration,
        sample=sample,
        revision=0,
        proposal=Proposal(
            reward=CodeReward(source=SOURCE, author="offline"),
            reasoning="height is what counts",
            operator=operator,
            parents=parents,
        ),
        stage=stage,
        reason=reason,
        seed=7,
        retries=retries,
        verdict=verdict,
        outcome=outcome,
        diagnosis=diagnosis,
    )


SETTINGS = SearchSettings(
    env="jumper",
    iterations=2,
    samples=3,
    confirm=0,
    finalists=2,
    final_seeds=3,
    env_steps=1000,
    num_envs=10,
    horizon=10,
)


@pytest.fixture
def point() -> Callable[..., CurvePoint]:
    return make_point


def confirmed(attempt: Attempt, *fitness: float | None) -> Attempt:
    """The attempt trained again after its generation, from seeds 11, 12, …; None is a training that
    failed."""
    assert attempt.outcome is not None
    repeats = tuple(
        Repeat(
            iteration=attempt.iteration,
            seed=seed,
            outcome=None,
            failure="the reward is NaN",
            retries=1,
        )
        if value is None
        else Repeat(
            iteration=attempt.iteration,
            seed=seed,
            outcome=attempt.outcome.model_copy(update={"fitness": value}),
        )
        for seed, value in enumerate(fitness, 11)
    )
    return attempt.model_copy(update={"repeats": repeats})


@pytest.fixture
def confirm() -> Callable[..., Attempt]:
    return confirmed


@pytest.fixture
def attempt() -> Callable[..., Attempt]:
    return make_attempt


@pytest.fixture
def description() -> TaskDescription:
    return JUMPER


@pytest.fixture
def settings() -> SearchSettings:
    return SETTINGS


@pytest.fixture
def report() -> RunReport:
    attempts = (
        make_attempt("1-01", Stage.TRAINED, 1.5, finding="height makes up 97 % of the reward"),
        make_attempt("1-02", Stage.REJECTED, reason="unknown variable 'heigth'"),
        make_attempt("1-03", Stage.FAILED, reason="the reward | turned NaN"),
        make_attempt(
            "2-01", Stage.TRAINED, 2.5, operator=Operator.IMPROVE, parents=("1-01",), retries=1
        ),
        make_attempt("2-02", Stage.TRAINED, 0.5, operator=Operator.DIFFERENT),
    )
    scores = (
        Score(
            name="2-01",
            seeds=(1, 2, 3),
            fitness=(2.0, 2.5, 3.0),
            mean=2.5,
            std=0.5,
            human_normalized=1.5,
        ),
        Score(
            name="1-01",
            seeds=(1, 2, 3),
            fitness=(1.0, None, 2.0),
            mean=1.5,
            std=0.7071,
            human_normalized=0.5,
        ),
        Score(
            name="human",
            seeds=(1, 2, 3),
            fitness=(1.9, 2.0, 2.1),
            mean=2.0,
            std=0.1,
            human_normalized=1.0,
            cached=True,
        ),
        Score(
            name="sparse",
            seeds=(1, 2, 3),
            fitness=(0.9, 1.0, 1.1),
            mean=1.0,
            std=0.1,
            human_normalized=0.0,
        ),
    )
    return RunReport(
        run_name="20261121-035500_jumper_jump",
        folder=Path("runs/20261121-035500_jumper_jump"),
        description=JUMPER,
        sentence="jump as high as you can",
        settings=SETTINGS,
        status=RunStatus.FINISHED,
        started="2026-11-21T03:55:00+00:00",
        seconds=125.0,
        designer="offline",
        wall="process",
        attempts=attempts,
        scores=scores,
        best=attempts[3],
        cost=RunCost(
            search_trainings=4,
            final_trainings=6,
            baseline_trainings=3,
            env_steps=13_000,
            money=Decimal(0),
        ),
        versions={"torch": "2.13.0"},
        git_commit="abc123",
        command=("eureka", "search", "jump as high as you can", "--env", "jumper"),
    )
