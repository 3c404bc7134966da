"""A benchmark's tables, for a terminal and as Markdown, its figures as CSV and JSON, and its
plot."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.batch.folder import UNDER_WAY, SearchState
from eureka_agent.batch.summary import plain_cell
from eureka_agent.bench.results import Cell, Results
from eureka_agent.bench.summary import (
    Estimate,
    MethodSummary,
    normalised_scores,
    normalised_tasks,
    summaries,
)
from eureka_agent.report.terminal import unbroken
from eureka_agent.text import one_line

_CSV_COLUMNS = (
    *("task", "method", "seed", "state", "mean", "fitness", "normalised", "human", "sparse"),
    *("attempts", "trained", "env_steps", "requests", "env_steps_to_human", "seconds", "message"),
)
_GAP = 2
"""Columns of a terminal between two of a table."""
_MOST_NAMES = 6
_LONGEST_MESSAGE = 300
Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Heads of a table, and its rows."""


def markdown(results: Results, title: str, again: str) -> str:
    """Both tables with what they mean. `again`: the command that goes on with the benchmark."""
    lines = [f"# {title}", "", f"`{again}`", "", "## Methods", ""]
    lines += _markdown_table(method_table(summaries(results)))
    lines += ["", _meaning(results), "", "## Tasks", ""]
    lines += _markdown_table(task_table(results))
    for heading, entries in _lists(results).items():
        lines += ["", f"{heading}:", "", *(f"- {each}" for each in entries)]
    if _goes_on(results):
        lines += ["", f"Go on with: `{again}`"]
    return "\n".join(lines) + "\n"


def render(results: Results, title: str, again: str, width: int) -> RenderableType:
    """The same for a terminal of so many columns."""
    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    parts += [*_fitted(method_table(summaries(results)), width), Text(_meaning(results)), Text()]
    parts += _fitted(task_table(results), width)
    for heading, entries in _lists(results).items():
        parts += [Text(f"{heading}:"), *(Text(f"  {each}") for each in entries), Text()]
    if _goes_on(results):
        parts += [unbroken(f"Go on with:  {again}"), Text()]
    return Group(*parts)


def method_table(found: Sequence[MethodSummary]) -> Rows:
    """A row for each method."""
    heads = (
        *("method", "searches", "median", "IQM", "P(better)", "tasks ≥ human", "executable"),
        *("env steps", "to human level", "requests", "time"),
    )
    rows = [
        (
            each.method,
            f"{each.finished} of {each.searches}",
            _interval(each.median),
            _interval(each.iqm),
            _interval(each.improvement),
            f"{each.at_human} of {each.compared}" if each.compared else "",
            "" if each.executable is None else f"{each.executable:.0%}",
            "" if each.env_steps is None else wording.count(each.env_steps),
            _to_human(each),
            "" if not each.requests else wording.count(each.requests),
            "" if each.seconds is None else wording.duration(each.seconds),
        )
        for each in found
    ]
    return _without_empty(heads, rows)


def task_table(results: Results) -> Rows:
    """A row for each task: raw scores, and the unit of the normalised ones."""
    heads = ("task", "human", "sparse", "unit of the score", *results.methods)
    rows = []
    for task in results.tasks:
        scale = results.scale(task)
        unit = "" if scale.unit in ("", "1") else f" [{scale.unit}]"
        rows.append(
            (
                f"{scale.label}{unit}",
                _spread(scale.human),
                _spread(scale.sparse),
                _denominator(scale.denominator) if scale.human else "",
                *(_spread(results.means(task, method)) for method in results.methods),
            )
        )
    return _without_empty(heads, rows)


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
    refused = [f"{scale.label}: {scale.refusal}" for scale in scales if scale.refusal]
    without: dict[str, list[Cell]] = {}
    for cell in results.cells:
        if cell.mean is None:
            # the same command goes on with all others, whatever their runs say
            failed = cell.state not in (*UNDER_WAY, SearchState.STOPPED)
            message = one_line(cell.message, _LONGEST_MESSAGE) if failed else ""
            without.setdefault(", ".join(filter(None, (cell.state, message))), []).append(cell)
    found = {
        "Not normalised": refused,
        "Without a score": [f"{why}: {_named(cells)}" for why, cells in without.items()],
    }
    return {heading: entries for heading, entries in found.items() if entries}


def _named(cells: Sequence[Cell]) -> str:
    names = [f"{cell.task} {cell.method} seed {cell.seed}" for cell in cells[:_MOST_NAMES]]
    more = len(cells) - _MOST_NAMES
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _goes_on(results: Results) -> bool:
    """True where the same command has something left to do."""
    left = (SearchState.FINISHED, SearchState.CANCELLED)
    return any(cell.state not in left for cell in results.cells)


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _to_human(summary: MethodSummary) -> str:
    if summary.env_steps_to_human is None:
        return "never" if summary.finished else ""
    reached = f"{summary.reached_human} of {summary.finished}"
    return f"{wording.count(summary.env_steps_to_human)} ({reached})"


def _denominator(value: float | None) -> str:
    return "refused" if value is None else wording.number(value)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return wording.plus_minus(statistics.fmean(values), deviation)


def _without_empty(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Rows:
    """The table without columns that no row has a text in."""
    kept = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    return tuple(heads[each] for each in kept), [tuple(row[each] for each in kept) for row in rows]


def _fitted(table: Rows, width: int) -> list[RenderableType]:
    """Tables that fit into a width, each with an empty line after it: columns that have no room go
    to a further one, which begins with the first column again."""
    heads, rows = table
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    groups: list[list[int]] = [[]]
    for number in range(1, len(heads)):
        used = widths[0] + sum(_GAP + widths[each] for each in groups[-1])
        if groups[-1] and used + _GAP + widths[number] > width:
            groups.append([])
        groups[-1].append(number)
    found: list[RenderableType] = []
    for group in groups:
        part = Table(box=None, pad_edge=False, header_style="bold")
        for number in (0, *group):
            part.add_column(heads[number])
        for row in rows:
            part.add_row(*(row[number] for number in (0, *group)))
        found += [part, Text()]
    return found


def _markdown_table(table: Rows) -> list[str]:
    heads, rows = table
    cells = [[cell.replace("|", "¦") for cell in row] for row in rows]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells)]


_LEFT, _WIDTH, _ROW, _TOP, _BOTTOM = 130, 560, 44, 34, 30
_COLOURS = ("#1f6feb", "#d2691e", "#2e8b57", "#8a2be2", "#b8860b", "#c71585")


def plot(results: Results) -> str:
    """Each search is a dot; bar and whiskers are the IQM and its 95 % interval. The lines at 0 and
    at 1 are the sparse and the human reward."""
    rows = []
    for summary in summaries(results):
        tasks = normalised_tasks(results, summary.method)
        scores = normalised_scores(results, summary.method, tasks)
        rows.append((summary, [value for each in scores for value in each]))
    values = [value for _, dots in rows for value in dots] + [0.0, 1.0]
    # wild searches are drawn at the edge
    low, high = max(min(values), -1.0), min(max(values), 3.0)
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        return round(_LEFT + _WIDTH * (min(max(value, low), high) - low) / (high - low), 1)

    height = _TOP + _ROW * len(rows) + _BOTTOM
    bottom = height - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}"'
        ' font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for value, name in ((0.0, "sparse"), (1.0, "human")):
        parts.append(
            f'<line x1="{x(value)}" x2="{x(value)}" y1="{_TOP - 8}" y2="{bottom}" stroke="#999"'
            ' stroke-dasharray="4 3"/>'
            f'<text x="{x(value)}" y="{_TOP - 14}" text-anchor="middle" fill="#555">{name}</text>'
        )
    for number, (summary, dots) in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(summary.method)}</text>'
        )
        parts += [
            f'<circle cx="{x(value)}" cy="{y + 10}" r="3" fill="{colour}" fill-opacity="0.35"/>'
            for value in dots
        ]
        if (iqm := summary.iqm) is not None:
            parts.append(
                f'<line x1="{x(iqm.low)}" x2="{x(iqm.high)}" y1="{y - 4}" y2="{y - 4}"'
                f' stroke="{colour}" stroke-width="2"/>'
                f'<rect x="{x(iqm.value) - 2}" y="{y - 11}" width="4" height="14" fill="{colour}"/>'
            )
    caption = "human-normalised score: searches (dots), interquartile mean with 95 % interval"
    parts.append(f'<text x="{_LEFT}" y="{height - 9}" fill="#555">{escape(caption)}</text></svg>')
    return "\n".join(parts) + "\n"
