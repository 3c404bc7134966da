"""A benchmark's figures by method and by task: aggregates with stratified bootstrap intervals
(Agarwal et al. 2021)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import trim_mean

from eureka_agent.bench.results import Results, executable_share

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


@dataclass(frozen=True)
class MethodSummary:
    """Figures of a method over all tasks. None where nothing is known."""

    method: str
    finished: int
    """Searches that ended with a final score, of `searches`."""
    searches: int
    median: Estimate | None
    """Human-normalised score: the median over tasks."""
    iqm: Estimate | None
    """The mean of the middle half of all searches."""
    improvement: Estimate | None
    """Probability of improvement over the first method; None for that one."""
    at_human: int
    """Tasks whose mean is at least the human reward's, of `compared`."""
    compared: int
    executable: float | None
    """Share of attempts whose training came to its end."""
    env_steps: float | None
    """Env steps of a search before its finals, mean."""
    requests: float | None
    """Requests to models of a search, mean."""
    env_steps_to_human: float | None
    """Median over the searches in which an attempt reached the human reward's fitness."""
    reached_human: int
    """Number of these searches."""
    seconds: float | None
    """Wall time of a search in the batch, mean."""


def summaries(results: Results) -> list[MethodSummary]:
    """A summary of each method, in the suite's order."""
    return [_summary(results, method, results.methods[0]) for method in results.methods]


def _summary(results: Results, method: str, first: str) -> MethodSummary:
    cells = [cell for cell in results.cells if cell.method == method]
    ended = [cell for cell in cells if cell.mean is not None]
    means = {task: found for task in results.tasks if (found := results.means(task, method))}
    scores = [
        [value for each in found if (value := results.scale(task).normalised(each)) is not None]
        for task, found in means.items()
        if results.scale(task).denominator
    ]
    # no scale is needed to compare two methods
    both = {task: theirs for task in means if (theirs := results.means(task, first))}
    improvement = None
    if both and method != first:
        ours = [means[task] for task in both]
        improvement = probability_of_improvement(ours, [*both.values()])
    human = {task: results.scale(task).human for task in means}
    compared = [fmean(means[task]) >= fmean(found) for task, found in human.items() if found]
    reached = [cell.env_steps_to_human for cell in ended if cell.env_steps_to_human is not None]
    return MethodSummary(
        method=method,
        finished=len(ended),
        searches=len(cells),
        median=median(scores) if scores else None,
        iqm=interquartile_mean(scores) if scores else None,
        improvement=improvement,
        at_human=sum(compared),
        compared=len(compared),
        executable=executable_share(cells),
        env_steps=fmean(cell.env_steps for cell in ended) if ended else None,
        requests=fmean(cell.requests for cell in ended) if ended else None,
        env_steps_to_human=statistics.median(reached) if reached else None,
        reached_human=len(reached),
        seconds=fmean(cell.seconds for cell in ended) if ended else None,
    )
