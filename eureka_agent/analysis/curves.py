"""A training's points as arrays, and the few statistics that the findings rest on. No torch, numpy only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eureka_agent.records import CheckpointRecord, CurvePoint, Evaluation, Outcome, TaskDescription
from eureka_agent.summaries import summarize

Array = npt.NDArray[np.float64]

REFLECTION_CHECKPOINTS = 10
"""Points of a training that the reflection shows (Ma et al. 2023)."""


@dataclass(frozen=True)
class Evidence:
    """All that a finding may look at."""

    points: Sequence[CurvePoint]
    checkpoints: Sequence[CheckpointRecord]
    evaluation: Evaluation | None
    description: TaskDescription
    failure: str = ""
    """Why the training broke off; empty where it did not."""

    def component_names(self) -> tuple[str, ...]:
        """Components in the reward's order."""
        names = [name for each in self.checkpoints for name in each.components]
        names += [name for point in self.points for name in point.components]
        return tuple(dict.fromkeys(names))

    def last_third(self) -> Sequence[CurvePoint]:
        """The points of the last third of the training, at least one where there is any."""
        return self.points[len(self.points) - math.ceil(len(self.points) / 3) :]

    def fitness(self) -> Array:
        """Fitness at the checkpoints that have one. Shape: (≤ checkpoints,)."""
        return np.array([each.fitness for each in self.checkpoints if each.fitness is not None], dtype=np.float64)

    def shares(self) -> dict[str, float]:
        """Each component's part of the sum of mean magnitudes over the last third, 0 to 1."""
        magnitudes = {
            name: _mean([point.component_magnitudes.get(name, 0.0) for point in self.last_third()])
            for name in self.component_names()
        }
        total = sum(magnitudes.values())
        return {name: value / total if total > 0 else 0.0 for name, value in magnitudes.items()}


def gather(
    outcome: Outcome | None,
    points: Sequence[CurvePoint],
    evaluation: Evaluation | None,
    description: TaskDescription,
    failure: str,
) -> Evidence:
    """The evidence of a training; one that broke off has its checkpoints made from its points."""
    checkpoints = outcome.checkpoints if outcome is not None else checkpoints_from(points)
    return Evidence(list(points), checkpoints, evaluation, description, failure)


def checkpoints_from(points: Sequence[CurvePoint]) -> tuple[CheckpointRecord, ...]:
    """At most ten checkpoints of equal parts of the points."""
    count = min(REFLECTION_CHECKPOINTS, len(points))
    parts = [points[len(points) * index // count : len(points) * (index + 1) // count] for index in range(count)]
    return tuple(summarize(part) for part in parts)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def noise(values: Array) -> float:
    """Standard deviation of a series about its trend, from successive differences: sqrt(mean(d²) / 2).

    Von Neumann 1941, "Distribution of the ratio of the mean square successive difference to the variance". A steady rise adds little to it.
    """
    return float(np.sqrt(np.mean(np.diff(values) ** 2) / 2.0)) if len(values) > 1 else 0.0


def rank_correlation(first: Array, second: Array) -> float:
    """Spearman's rank correlation with mean ranks for ties; 0 where either series is constant or shorter than 3."""
    if len(first) < 3:
        return 0.0
    ranks = [_ranks(series) - (len(series) - 1) / 2.0 for series in (first, second)]
    scale = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float((ranks[0] * ranks[1]).sum() / scale) if scale > 0 else 0.0


def _ranks(values: Array) -> Array:
    """Ranks from 0, ties at their mean."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    return below + (equal - 1) / 2.0
