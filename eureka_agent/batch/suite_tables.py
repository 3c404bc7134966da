"""A benchmark's tables as a document, and its figures as CSV and JSON."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import trim_mean

from eureka_agent import wording
from eureka_agent.batch.folder import UNDER_WAY, SearchState
from eureka_agent.batch.suite_results import Results, executable_share
from eureka_agent.report.blocks import Block, Document, Grid, Items, Section, Source, Words
from eureka_agent.text import one_line

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

    def improvement(samples: Matrix) -> float:
        pairs = zip(samples[: len(ours)], samples[len(ours) :], strict=True)
        differences = [np.subtract.outer(own, their) for own, their in pairs]
        return float(np.mean([np.mean((each > 0) + 0.5 * (each == 0)) for each in differences]))

    return _bootstrapped([*ours, *theirs], improvement)


def _bootstrapped(scores: Scores, statistic: Callable[[Matrix], float]) -> Estimate:
    """Resamples the searches of each task by themselves: tasks are fixed, seeds are a sample."""
    tasks = [np.asarray(each, dtype=np.float64) for each in scores]
    generator = np.random.default_rng(0)
    values = [
        statistic([generator.choice(each, size=len(each)) for each in tasks])
        for _ in range(RESAMPLES)
    ]
    tail = 100.0 * (1.0 - CONFIDENCE) / 2.0
    low, high = np.percentile(values, [tail, 100.0 - tail])
    return Estimate(statistic(tasks), float(low), float(high))


@dataclass(frozen=True)
class MethodSummary:
    """Figures of a method over all tasks. None where nothing is known."""

    method: str
    finished: int
    """Searches that ended with a final score, of `searches`."""
    searches: int
    median: Estimate | None
    iqm: Estimate | None
    improvement: Estimate | None
    """Probability of improvement over the first method; None for that one."""
    at_human: int
    """Tasks whose mean is at least the human reward's, of `compared`."""
    compared: int
    executable: float | None
    env_steps: float | None
    """Env steps of a search before its finals, mean."""
    requests: float | None
    """Requests to models of a search, mean."""
    seconds: float | None
    """Wall time of a search in the batch, mean."""


def summaries(results: Results) -> list[MethodSummary]:
    """A summary of each method, in the suite's order."""
    return [_summary(results, method) for method in results.methods]


def _summary(results: Results, method: str) -> MethodSummary:
    cells = [cell for cell in results.cells if cell.method == method]
    ended = [cell for cell in cells if cell.mean is not None]
    means = {task: found for task in results.tasks if (found := results.means(task, method))}
    scores = [
        [value for each in found if (value := results.scale(task).normalised(each)) is not None]
        for task, found in means.items()
        if results.scale(task).denominator
    ]
    # no scale is needed to compare two methods
    first = results.methods[0]
    both = {task: theirs for task in means if (theirs := results.means(task, first))}
    improvement = None
    if both and method != first:
        ours = [means[task] for task in both]
        improvement = probability_of_improvement(ours, [*both.values()])
    human = {task: results.scale(task).human for task in means}
    compared = [fmean(means[task]) >= fmean(found) for task, found in human.items() if found]
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
        seconds=fmean(cell.seconds for cell in ended) if ended else None,
    )


_SPARE = ("median", "executable", "env steps", "requests", "time", "sparse")
"""Columns that a narrow terminal leaves out."""
_MOST_NAMES = 6
_LONGEST_MESSAGE = 300


def document(results: Results, title: str, again: str) -> Document:
    """Both tables with what they mean. `again`: the command that goes on with the benchmark."""
    missing: list[Block] = []
    for heading, entries in _lists(results).items():
        missing += [Words(f"{heading}:"), Items(entries)] if entries else []
    left = (SearchState.FINISHED, SearchState.CANCELLED)
    if any(cell.state not in left for cell in results.cells):
        missing += [Words("This command goes on with it:"), Source(again, language="sh")]
    sections: dict[str, Sequence[Block]] = {
        "Methods": [method_table(summaries(results)), Words(_meaning(results), "muted")],
        "Tasks": [task_table(results)],
        "What is left": missing,
    }
    made = [Section(name.lower(), name, partial(tuple, each)) for name, each in sections.items()]
    return Document(title, [Words(f"`{again}`", "muted")], made)


def method_table(found: Sequence[MethodSummary]) -> Grid:
    """A row for each method."""
    rows = [
        {
            "method": each.method,
            "searches": f"{each.finished} of {each.searches}",
            "median": _interval(each.median),
            "IQM": _interval(each.iqm),
            "P(better)": _interval(each.improvement),
            "tasks ≥ human": f"{each.at_human} of {each.compared}" if each.compared else "",
            "executable": "" if each.executable is None else f"{each.executable:.0%}",
            "env steps": "" if each.env_steps is None else wording.count(each.env_steps),
            "requests": wording.count(each.requests) if each.requests else "",
            "time": "" if each.seconds is None else wording.duration(each.seconds),
        }
        for each in found
    ]
    return _table(rows)


def task_table(results: Results) -> Grid:
    """A row for each task: raw scores, and the unit of the normalised ones."""
    rows = []
    for task in results.tasks:
        scale = results.scale(task)
        unit = "" if scale.unit in ("", "1") else f" [{scale.unit}]"
        refused = "refused" if scale.denominator is None else wording.number(scale.denominator)
        facts = {
            "task": f"{scale.label}{unit}",
            "human": _spread(scale.human),
            "sparse": _spread(scale.sparse),
            "unit of the score": refused if scale.human else "",
        }
        scores = {method: _spread(results.means(task, method)) for method in results.methods}
        rows.append(facts | scores)
    return _table(rows)


def as_json(results: Results) -> dict[str, Any]:
    """Summaries, scales and searches in plain JSON types."""
    scales = [results.scale(task) for task in results.tasks]
    return {
        "methods": [asdict(each) for each in summaries(results)],
        "tasks": [{**asdict(scale), "denominator": scale.denominator} for scale in scales],
        "searches": [
            {
                **asdict(cell),
                "mean": cell.mean,
                "normalised": results.scale(cell.task).normalised(cell.mean),
                "executable": cell.executable,
            }
            for cell in results.cells
        ],
    }


def _meaning(results: Results) -> str:
    return (
        "Scores are human-normalised: 0 is the sparse reward, and the unit is the distance from"
        " the sparse to the human one. Brackets are 95 % intervals of a bootstrap that resamples"
        " the searches of each task. IQM is the mean of the middle half of all searches."
        " P(better) is the probability that a search scores higher than one of"
        f" {results.methods[0]} on the same task."
    )


def _lists(results: Results) -> dict[str, list[str]]:
    """Tasks and searches that are missing in the tables, with the reason, by heading."""
    scales = [results.scale(task) for task in results.tasks]
    without: dict[str, list[str]] = {}
    for cell in results.cells:
        if cell.mean is None:
            # the same command goes on with all others, whatever their runs say
            failed = cell.state not in (*UNDER_WAY, SearchState.STOPPED)
            message = one_line(cell.message, _LONGEST_MESSAGE) if failed else ""
            why = ", ".join(filter(None, (cell.state, message)))
            without.setdefault(why, []).append(f"{cell.task} {cell.method} seed {cell.seed}")
    return {
        "Not normalised": [f"{each.label}: {each.refusal}" for each in scales if each.refusal],
        "Without a score": [
            f"{why}: {wording.some_of(names, _MOST_NAMES)}" for why, names in without.items()
        ],
    }


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _spread(values: Sequence[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return wording.plus_minus(statistics.fmean(values), deviation) if values else ""


def _table(rows: Sequence[Mapping[str, str]]) -> Grid:
    """The rows, which have their cells by title, without columns that no row has a text in."""
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    cells = [[row[title] for title in titles] for row in rows]
    return Grid(titles, cells, numbers=titles[1:], spare=_SPARE)
