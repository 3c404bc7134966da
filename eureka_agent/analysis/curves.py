"""A training's points as arrays, the statistics for the findings, and Eureka's reward reflection
(Ma et al. 2023): a training at ten checkpoints. Needs numpy alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eureka_agent.label_records import LearnedLabels
from eureka_agent.records import (
    CheckpointRecord,
    ComponentSummary,
    CurvePoint,
    Evaluation,
    LearnedBlend,
    LearnedReward,
    Outcome,
    TaskDescription,
)
from eureka_agent.summaries import summarize
from eureka_agent.wording import MISSING, significant

Array = npt.NDArray[np.float64]

TIME_OUT = "time_out"
"""End of an episode by the time limit."""
MIN_CHECKPOINTS = 5
"""Fewest checkpoints with a fitness that show a trend."""
TASK_CORRELATION = 0.7
"""Rank correlation with the fitness from which a component counts as the task, or a way to it."""
RISING_CORRELATION = 0.5
"""Rank correlation of fitness and time from which a training learns."""
REFLECTION_CHECKPOINTS = 10
"""Points of a training in the reflection (Ma et al. 2023)."""


@dataclass(frozen=True)
class Evidence:
    """The data that findings are read from."""

    points: Sequence[CurvePoint]
    checkpoints: Sequence[CheckpointRecord]
    evaluation: Evaluation | None
    description: TaskDescription
    failure: str = ""
    """Why the training broke off; empty where it did not."""
    score: float | None = None
    """Fitness of the policy without exploration noise."""
    kept: int | None = None
    """Index of the evaluated policy's checkpoint; None without an evaluation."""
    visited: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Lowest and highest value of each number that the fitness reads, over recorded episodes."""
    learned: LearnedReward | LearnedBlend | LearnedLabels | None = None
    """Knowledge of its reward, if that learns."""

    def good_ends(self) -> tuple[str, ...]:
        """Ends of an episode that are no failure: time-out and successes."""
        return (TIME_OUT, *self.description.success_causes)

    def component_names(self) -> tuple[str, ...]:
        """Components in the reward's order."""
        names = [name for each in self.checkpoints for name in each.components]
        names += [name for point in self.points for name in point.components]
        return tuple(dict.fromkeys(names))

    def last_third(self) -> Sequence[CurvePoint]:
        """Points of the training's last third, at least one if there is any."""
        return self.points[len(self.points) - math.ceil(len(self.points) / 3) :]

    def fitness(self) -> Array:
        """Fitness at the checkpoints that have one. Shape: (≤ checkpoints,)."""
        known = [each.fitness for each in self.checkpoints if each.fitness is not None]
        return np.array(known, dtype=np.float64)

    def action_deviations(self) -> list[float | None]:
        """Standard deviation of the actions' noise at each checkpoint."""
        found = []
        for each in self.checkpoints:
            before = [it.action_std for it in self.points if it.env_steps <= each.env_steps]
            found.append(before[-1] if before else None)
        return found

    def follows_fitness(self, component: str) -> bool:
        """True where a component correlates with the fitness, as the task's own term does."""
        known = [each for each in self.checkpoints if each.fitness is not None]
        if len(known) < MIN_CHECKPOINTS:
            return False
        values = np.array([each.components.get(component, 0.0) for each in known])
        return rank_correlation(values, self.fitness()) >= TASK_CORRELATION

    def learns(self) -> bool:
        """True where the fitness rises over the training, or has reached the solved level."""
        fitness = self.fitness()
        solved = self.description.success_fitness
        if not len(fitness):
            return False
        if solved is not None and float(fitness[-1]) >= solved:
            return True
        places = np.arange(len(fitness), dtype=np.float64)
        return rank_correlation(places, fitness) >= RISING_CORRELATION

    def size(self, component: str, points: Sequence[CurvePoint]) -> float:
        return _mean([point.component_magnitudes.get(component, 0.0) for point in points])

    def deviation(self, component: str, points: Sequence[CurvePoint]) -> float:
        return _mean([point.component_deviations.get(component, 0.0) for point in points])

    def shares(self, points: Sequence[CurvePoint] | None = None) -> dict[str, float]:
        """Each component's part of the mean magnitudes, 0 to 1 (None: of the last third)."""
        points = self.last_third() if points is None else points
        sizes = {name: self.size(name, points) for name in self.component_names()}
        total = sum(sizes.values())
        return {name: value / total if total > 0 else 0.0 for name, value in sizes.items()}


def gather(
    outcome: Outcome | None,
    points: Sequence[CurvePoint],
    evaluation: Evaluation | None,
    description: TaskDescription,
    failure: str,
    visited: Mapping[str, tuple[float, float]] | None = None,
) -> Evidence:
    """Collect the evidence of a training; one that broke off gets checkpoints from its points."""
    checkpoints = outcome.checkpoints if outcome is not None else checkpoints_from(points)
    evaluated = evaluation is not None and bool(evaluation.episodes)
    score = None if outcome is None else outcome.fitness
    if evaluation is not None and evaluated:
        score = evaluation.fitness_mean()
    kept = outcome.best_checkpoint if outcome is not None and evaluated else None
    learned = None if outcome is None else outcome.learned
    known = failure, score, kept, visited or {}, learned
    return Evidence(list(points), checkpoints, evaluation, description, *known)


def checkpoints_from(points: Sequence[CurvePoint]) -> tuple[CheckpointRecord, ...]:
    """At most ten checkpoints, of equal parts of the points."""
    count = min(REFLECTION_CHECKPOINTS, len(points))
    parts = [
        points[len(points) * index // count : len(points) * (index + 1) // count]
        for index in range(count)
    ]
    return tuple(summarize(part) for part in parts)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def noise(values: Array) -> float:
    """Standard deviation of a series about its trend: sqrt(mean(d²) / 2) (Von Neumann 1941,
    "Distribution of the ratio of the mean square successive difference to the variance")."""
    return float(np.sqrt(np.mean(np.diff(values) ** 2) / 2.0)) if len(values) > 1 else 0.0


def rank_correlation(first: Array, second: Array) -> float:
    """Spearman's rank correlation, mean ranks for ties; 0 for constant or very short series."""
    # twice the ranks from their mean: the values below each one, less those above it
    one, other = (np.sign(np.subtract.outer(each, each)).sum(axis=1) for each in (first, second))
    scale = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum() / scale) if scale > 0 and len(first) > 2 else 0.0


def summarize_components(evidence: Evidence) -> tuple[ComponentSummary, ...]:
    """Summarise each component over the checkpoints, in the reward's order."""
    shares = evidence.shares()
    summaries = []
    for name in evidence.component_names():
        values = tuple(
            each.components[name] for each in evidence.checkpoints if name in each.components
        ) or (0.0,)
        summaries.append(
            ComponentSummary(
                name=name,
                values=values,
                maximum=max(values),
                mean=sum(values) / len(values),
                minimum=min(values),
                share=shares[name],
            )
        )
    return tuple(summaries)


def reflection(evidence: Evidence, components: Sequence[ComponentSummary]) -> str:
    """The reflection as a table: a row for each component, reward, fitness and episode length."""
    if not evidence.checkpoints:
        return "The training ended before its first checkpoint."
    description = evidence.description
    rows: list[tuple[str, list[float | None]]] = [
        (component.name, list(component.values)) for component in components
    ]
    first, last = _end_shares(evidence)
    shares = {name: f"  ({first[name]:.0%} → {last[name]:.0%})" for name in first}
    rows.append(("reward", [each.reward for each in evidence.checkpoints]))
    rows.append(
        (f"fitness [{description.fitness_unit}]", [each.fitness for each in evidence.checkpoints])
    )
    rows.append(("episode length", [each.episode_length for each in evidence.checkpoints]))
    deviations, of_noise = evidence.action_deviations(), ""
    if any(each is not None for each in deviations):
        rows.append(("action noise", deviations))
        of_noise = " Action noise: its standard deviation."
    width = max(len(name) for name, _ in rows)
    lines = [
        "The training, in which exploration noise costs fitness: means of"
        f" {len(evidence.checkpoints)} parts of {evidence.checkpoints[-1].env_steps} environment"
        " steps, one seed. Components and reward: a step; in brackets a component's share of the"
        f" reward's size in the first and the last part. Fitness: {description.fitness_doc}."
        f" Episode length: control steps, {description.max_episode_length} at most.{of_noise}"
    ]
    lines += [
        f"{name:<{width}}  {' '.join(number(value) for value in values)}{shares.get(name, '')}"
        for name, values in rows
    ]
    return "\n".join(lines)


def _end_shares(evidence: Evidence) -> tuple[dict[str, float], dict[str, float]]:
    """Components' shares of the reward's magnitude at the first and last checkpoint."""
    ends = [each.env_steps for each in evidence.checkpoints]
    first = [point for point in evidence.points if point.env_steps <= ends[0]]
    start = ends[-2] if len(ends) > 1 else 0
    last = [point for point in evidence.points if start < point.env_steps <= ends[-1]]
    return (evidence.shares(first), evidence.shares(last)) if first and last else ({}, {})


def number(value: float | None) -> str:
    """Three significant digits; a dash for None."""
    return significant(value, 3, MISSING)
