"""Aggregates over tasks and seeds, with stratified bootstrap intervals (Agarwal et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import trim_mean

RESAMPLES = 2000
CONFIDENCE = 0.95
Scores = Sequence[Sequence[float]]
"""Normalised scores of one method: of each task the searches' ones."""
Matrix = Sequence[NDArray[np.float64]]


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval."""

    value: float
    low: float
    high: float


def median(scores: Scores) -> Estimate:
    """Median over tasks of the mean over seeds."""
    return _bootstrapped(scores, lambda tasks: float(np.median([np.mean(each) for each in tasks])))


def interquartile_mean(scores: Scores) -> Estimate:
    """Mean of the middle half of all searches' scores."""
    return _bootstrapped(scores, lambda tasks: float(trim_mean(np.concatenate(tasks), 0.25)))


def probability_of_improvement(ours: Scores, theirs: Scores) -> Estimate:
    """Probability that a search of ours scores higher than one of theirs on the same task, ties
    counted half, averaged over tasks. `ours` and `theirs` have the same tasks."""
    first = [np.asarray(each, dtype=np.float64) for each in ours]
    second = [np.asarray(each, dtype=np.float64) for each in theirs]
    generator = np.random.default_rng(0)
    values = [
        _improvement(_resampled(first, generator), _resampled(second, generator))
        for _ in range(RESAMPLES)
    ]
    return _estimate(_improvement(first, second), values)


def _improvement(ours: Matrix, theirs: Matrix) -> float:
    per_task = [
        np.mean((a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :]))
        for a, b in zip(ours, theirs, strict=True)
    ]
    return float(np.mean(per_task))


def _bootstrapped(scores: Scores, statistic: Callable[[Matrix], float]) -> Estimate:
    """Resamples the searches of each task by themselves: tasks are fixed, seeds are a sample."""
    tasks = [np.asarray(each, dtype=np.float64) for each in scores]
    generator = np.random.default_rng(0)
    values = [statistic(_resampled(tasks, generator)) for _ in range(RESAMPLES)]
    return _estimate(statistic(tasks), values)


def _resampled(tasks: Matrix, generator: np.random.Generator) -> list[NDArray[np.float64]]:
    return [generator.choice(each, size=len(each)) for each in tasks]


def _estimate(value: float, values: Sequence[float]) -> Estimate:
    tail = 100.0 * (1.0 - CONFIDENCE) / 2.0
    low, high = np.percentile(values, [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high))
