"""A benchmark's tables as a document, and its figures as CSV and JSON."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from eureka_agent import wording
from eureka_agent.batch.folder import UNDER_WAY, SearchState
from eureka_agent.batch.summary import plain_cell
from eureka_agent.bench.results import Cell, Results
from eureka_agent.bench.summary import Estimate, MethodSummary, summaries
from eureka_agent.report.blocks import Block, Document, Grid, Items, Section, Source, Words
from eureka_agent.text import one_line

_CSV_COLUMNS = (
    *("task", "method", "seed", "state", "mean", "fitness", "normalised", "human", "sparse"),
    *("attempts", "trained", "env_steps", "requests", "env_steps_to_human", "seconds", "message"),
)
_SPARE = ("median", "executable", "env steps", "to human level", "requests", "time", "sparse")
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
    titles = (
        *("method", "searches", "median", "IQM", "P(better)", "tasks ≥ human", "executable"),
        *("env steps", "to human level", "requests", "time"),
    )
    rows = [
        (
            each.method,
            f"{each.finished} of {each.searches}",
            *map(_interval, (each.median, each.iqm, each.improvement)),
            f"{each.at_human} of {each.compared}" if each.compared else "",
            "" if each.executable is None else f"{each.executable:.0%}",
            "" if each.env_steps is None else wording.count(each.env_steps),
            _to_human(each),
            "" if not each.requests else wording.count(each.requests),
            "" if each.seconds is None else wording.duration(each.seconds),
        )
        for each in found
    ]
    return _without_empty(titles, rows)


def task_table(results: Results) -> Grid:
    """A row for each task: raw scores, and the unit of the normalised ones."""
    titles = ("task", "human", "sparse", "unit of the score", *results.methods)
    rows = []
    for task in results.tasks:
        scale = results.scale(task)
        unit = "" if scale.unit in ("", "1") else f" [{scale.unit}]"
        refused = "refused" if scale.denominator is None else wording.number(scale.denominator)
        scores = (_spread(results.means(task, method)) for method in results.methods)
        facts = (_spread(scale.human), _spread(scale.sparse), refused if scale.human else "")
        rows.append((f"{scale.label}{unit}", *facts, *scores))
    return _without_empty(titles, rows)


def as_csv(results: Results) -> str:
    """All searches with all numbers in full."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for cell in results.cells:
        scale = results.scale(cell.task)
        values = {
            **asdict(cell),
            "mean": cell.mean,
            "fitness": " ".join(map(str, cell.fitness)),
            "normalised": scale.normalised(cell.mean),
            "human": statistics.fmean(scale.human) if scale.human else None,
            "sparse": statistics.fmean(scale.sparse) if scale.sparse else None,
        }
        writer.writerow({name: plain_cell(values[name]) for name in _CSV_COLUMNS})
    return stream.getvalue()


def as_json(results: Results) -> dict[str, Any]:
    """Summaries, scales and searches in plain JSON types."""
    scales = [results.scale(task) for task in results.tasks]
    return {
        "methods": [asdict(each) for each in summaries(results)],
        "tasks": [{**asdict(scale), "denominator": scale.denominator} for scale in scales],
        "searches": [
            {**asdict(cell), "mean": cell.mean, "executable": cell.executable}
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
    without: dict[str, list[Cell]] = {}
    for cell in results.cells:
        if cell.mean is None:
            # the same command goes on with all others, whatever their runs say
            failed = cell.state not in (*UNDER_WAY, SearchState.STOPPED)
            message = one_line(cell.message, _LONGEST_MESSAGE) if failed else ""
            without.setdefault(", ".join(filter(None, (cell.state, message))), []).append(cell)
    return {
        "Not normalised": [f"{each.label}: {each.refusal}" for each in scales if each.refusal],
        "Without a score": [f"{why}: {_named(cells)}" for why, cells in without.items()],
    }


def _named(cells: Sequence[Cell]) -> str:
    names = [f"{cell.task} {cell.method} seed {cell.seed}" for cell in cells[:_MOST_NAMES]]
    more = len(cells) - _MOST_NAMES
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _to_human(summary: MethodSummary) -> str:
    if summary.env_steps_to_human is None:
        return "never" if summary.finished else ""
    reached = f"{summary.reached_human} of {summary.finished}"
    return f"{wording.count(summary.env_steps_to_human)} ({reached})"


def _spread(values: Sequence[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return wording.plus_minus(statistics.fmean(values), deviation) if values else ""


def _without_empty(titles: Sequence[str], rows: Collection[Sequence[str]]) -> Grid:
    """The table without columns that no row has a text in."""
    kept = [place for place in range(len(titles)) if any(row[place] for row in rows)]
    left = tuple(titles[each] for each in kept)
    shown = [tuple(row[each] for each in kept) for row in rows]
    return Grid(left, shown, numbers=left[1:], spare=_SPARE)
