"""A benchmark's figures by method and by task: aggregates with stratified bootstrap intervals
(Agarwal et al. 2021)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    first = results.methods[0]
    return [_summary(results, method, first) for method in results.methods]


def normalised_tasks(results: Results, *methods: str) -> list[str]:
    """Tasks whose scores may be normalised, with a score of each of the methods."""
    return [
        task
        for task in results.tasks
        if task in results.scales
        and results.scales[task].denominator
        and all(results.means(task, method) for method in methods)
    ]


def normalised_scores(results: Results, method: str, tasks: Sequence[str]) -> Scores:
    """Human-normalised scores of a method's searches, by task."""
    found = []
    for task in tasks:
        scale = results.scales[task]
        values = [scale.normalised(mean) for mean in results.means(task, method)]
        found.append([value for value in values if value is not None])
    return found


def _summary(results: Results, method: str, first: str) -> MethodSummary:
    cells = [cell for cell in results.cells if cell.method == method]
    ended = [cell for cell in cells if cell.mean is not None]
    tasks = normalised_tasks(results, method)
    scores = normalised_scores(results, method, tasks)
    both = _tasks_of_both(results, method, first)
    compared, at_human = 0, 0
    for task in results.tasks:
        means = results.means(task, method)
        if means and task in results.scales and results.scales[task].human:
            compared += 1
            at_human += statistics.fmean(means) >= statistics.fmean(results.scales[task].human)
    reached = [cell.env_steps_to_human for cell in ended if cell.env_steps_to_human is not None]
    return MethodSummary(
        method=method,
        finished=len(ended),
        searches=len(cells),
        median=median(scores) if scores else None,
        iqm=interquartile_mean(scores) if scores else None,
        improvement=(
            probability_of_improvement(
                [results.means(task, method) for task in both],
                [results.means(task, first) for task in both],
            )
            if both and method != first
            else None
        ),
        at_human=at_human,
        compared=compared,
        executable=executable_share(cells),
        env_steps=_mean_of([cell.env_steps for cell in ended]),
        requests=_mean_of([cell.requests for cell in ended]),
        env_steps_to_human=statistics.median(reached) if reached else None,
        reached_human=len(reached),
        seconds=_mean_of([cell.seconds for cell in ended]),
    )


def _tasks_of_both(results: Results, method: str, other: str) -> list[str]:
    """Tasks on which both have scores; no scale is needed to compare them."""
    return [
        task for task in results.tasks if results.means(task, method) and results.means(task, other)
    ]


def _mean_of(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
