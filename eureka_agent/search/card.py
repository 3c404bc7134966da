"""The difficulty card of a task, from a run that trained its baselines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from eureka_agent.archive.run_folder import Run
from eureka_agent.cards import Card, CardPoint, CardReward
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command
from eureka_agent.records import BASELINES, FinalTraining, Outcome, Score, TaskDescription
from eureka_agent.report.comparison import compare_scores
from eureka_agent.sandbox.cores import available_cores
from eureka_agent.search.scoring import score
from eureka_agent.settings import TrainingSettings
from eureka_agent.wording import plural

HALF_WAY = 0.5
MOST_OF_THE_WAY = 0.9
_PACKAGES = ("torch", "mujoco", "gymnasium")


class NoCardError(EurekaError):
    """A run from which no card can be made."""


def card_of(run: Run) -> Card:
    """The card that follows from a run's baselines. Raises NoCardError where one is missing."""
    versions = run.archive.state.began.versions
    return make_card(
        run.description,
        run.archive.trainings(),
        run.settings,
        _minutes(run),
        {name: versions[name] for name in _PACKAGES if name in versions},
    )


def make_card(
    description: TaskDescription,
    trainings: Sequence[FinalTraining],
    settings: TrainingSettings,
    minutes: dict[str, float],
    packages: dict[str, str],
) -> Card:
    """The card that follows from trainings of the baselines. Raises NoCardError where one is
    missing."""
    scores = {name: score(name, trainings) for name in BASELINES}
    for name, found in scores.items():
        if found.mean is None:
            raise NoCardError(
                f"the {name} reward of task {description.task!r} has no training that ended",
                "a card compares a human and a sparse reward:"
                f" {command('envs --check')} tries both",
            )
    measured = description.measured
    if measured is None or measured.random_actions is None:
        raise NoCardError(
            f"it is not known what random actions score on task {description.task!r}",
            f"{command('envs --check')} says what fails when they are taken",
        )
    untrained = measured.random_actions.mean
    means = [each.mean for each in scores.values() if each.mean is not None]
    level = description.success_fitness
    if level is None or level <= untrained:
        level = max(means)
    outcomes = {
        name: [each.outcome for each in trainings if each.name == name and each.outcome is not None]
        for name in BASELINES
    }
    curves = {name: _curve(found) for name, found in outcomes.items()}
    reached = _reached(curves["human"], untrained)
    rewards = {
        name: _reward(found, curves[name], untrained, level, reached)
        for name, found in scores.items()
    }
    if not rewards["human"].learns:
        rewards = {
            name: each.model_copy(update={"env_steps_to_level": None})
            for name, each in rewards.items()
        }
    return Card(
        task=description.task,
        fingerprint=description.fingerprint,
        unit=description.fitness_unit,
        env_steps=settings.env_steps,
        budget=None if settings.env_steps == description.env_steps else description.env_steps,
        num_envs=settings.num_envs,
        untrained=untrained,
        level=level,
        human=rewards["human"],
        sparse=rewards["sparse"],
        decides=_better(scores["human"], scores["sparse"]),
        minutes=minutes,
        packages=packages,
    )


def _reward(
    found: Score,
    curve: Sequence[CardPoint],
    untrained: float,
    level: float,
    reached: float | None,
) -> CardReward:
    half_way = untrained + HALF_WAY * (level - untrained)
    return CardReward(
        fitness=found.fitness,
        mean=found.mean,
        std=found.std,
        learned=sum(value is not None and value >= half_way for value in found.fitness),
        env_steps_to_level=None if reached is None else _first(curve, reached),
        curve=tuple(curve),
    )


def _curve(outcomes: Sequence[Outcome]) -> list[CardPoint]:
    """Mean, lowest and highest fitness at each checkpoint."""
    points = []
    for checkpoints in zip(*(each.checkpoints for each in outcomes), strict=True):
        values = [each.fitness for each in checkpoints if each.fitness is not None]
        points.append(
            CardPoint(
                env_steps=checkpoints[0].env_steps,
                mean=statistics.fmean(values) if values else None,
                low=min(values, default=None),
                high=max(values, default=None),
            )
        )
    return points


def _reached(curve: Sequence[CardPoint], untrained: float) -> float | None:
    """Fitness with most of the way to the best point of a curve; None for one that never rises."""
    best = max((point.mean for point in curve if point.mean is not None), default=untrained)
    return untrained + MOST_OF_THE_WAY * (best - untrained) if best > untrained else None


def _first(curve: Sequence[CardPoint], fitness: float) -> int | None:
    """Env steps of the first point that reaches a fitness."""
    for point in curve:
        if point.mean is not None and point.mean >= fitness:
            return point.env_steps
    return None


def _better(human: Score, sparse: Score) -> Literal["human", "sparse", "neither"]:
    comparison = compare_scores(human, sparse)
    if comparison is None or not (comparison.better or comparison.worse):
        return "neither"
    return "human" if comparison.better else "sparse"


def _minutes(run: Run) -> dict[str, float]:
    """Wall time of the trainings by device; nothing where some are an earlier run's."""
    devices = run.archive.state.devices
    if not devices or any(each.cached for each in run.archive.trainings()):
        return {}
    device = devices[-1]
    if not device.startswith("cuda"):
        device = plural(run.settings.workers or len(available_cores()), "CPU core")
    return {device: round(run.seconds / 60.0, 1)}
