"""Data of charts, which `static/charts.js` draws in a report and in the live page.

A document has `style.css` and `uPlot.min.css` in its head, and `uPlot.iife.min.js` and `charts.js`,
in this order, at its end. Each chart is an element as `figure` writes it:

    <figure class="chart">
      <figcaption><b>title</b><span>note</span></figcaption>
      <script type="application/json">chart</script>
    </figure>

`charts.js` draws all of them once it is loaded, and again at another width, another colour scheme,
or on paper. `EurekaCharts.set(figure, chart)` draws new data into a figure, which needs no script
element then; `EurekaCharts.draw(element)` draws figures that were added below an element.

A chart is an object of one of two kinds. All numbers are finite or null.

- `lines`: `x` and `y` with a `label` that holds the unit; `x.values`, and `x.format`, `"count"` for
  `1.2M` or `"number"`; `series`, each with `name`, `role`, `values`, and perhaps `low` and `high`,
  the edges of its band. All four have the length of `x.values`.
- `scores`: `x.label`, `y.label`; `rows`, each with `name`, `role`, `mean`, `low`, `high`, the ends
  of its error bar, and `points`; `spread` and `point` say what error bars and points are.

A `role` chooses colour and dashes: `best`, `median`, `human` and `sparse` have their own, the lines
of an `attempt` take colours in turn.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from markupsafe import Markup

from eureka_agent import wording
from eureka_agent.attempt_words import measure_of
from eureka_agent.records import BASELINES, Attempt, Score
from eureka_agent.report.sparkline import resample
from eureka_agent.text import escape_unprintable

MOST_POINTS = 120
"""Values of one line."""
MOST_LINES = 6
"""Attempts in one chart."""
SPREAD = "± standard deviation over the seeds"

Chart = dict[str, Any]
Role = Literal["best", "attempt", "median", "human", "sparse"]


@dataclass(frozen=True)
class Curve:
    """Fitness over one training."""

    env_steps: tuple[int, ...]
    """Increasing."""
    fitness: tuple[float | None, ...]
    """Fitness at each of them; None where no episode ended."""


@dataclass(frozen=True)
class PlottedTrainings:
    """Trainings of one reward from several seeds: one line with a band."""

    name: str
    role: Role
    curves: tuple[Curve, ...]


def learning_curves(trainings: Sequence[PlottedTrainings], unit_note: str) -> Chart | None:
    """Lines of means over seeds, with bands of ± a standard deviation (n − 1) over two seeds and
    more for the best and the baselines; None without a known value. A curve of more than
    `MOST_POINTS` points is drawn by the means of so many equal parts. A mean is drawn where all
    seeds are known; between a seed's known values lies a straight line. `unit_note`: `" (m)"` or
    empty."""
    short = [
        replace(each, curves=tuple(shortened(curve) for curve in each.curves)) for each in trainings
    ]
    known = [curve for each in short for curve in each.curves if _is_known(curve)]
    if not known:
        return None
    places = max(known, key=lambda curve: (len(curve.env_steps), curve.env_steps[-1])).env_steps
    # a curve of few points may go on where one of many, still in training, has come to
    furthest = max(known, key=lambda curve: curve.env_steps[-1]).env_steps
    places = (*places, *(place for place in furthest if place > places[-1]))
    series = [_mean_line(each, places) for each in short if any(map(_is_known, each.curves))]
    return {
        "kind": "lines",
        "x": {"label": "env steps", "format": "count", "values": list(places)},
        "y": {"label": f"fitness{unit_note}"},
        "series": series,
    }


def _is_known(curve: Curve) -> bool:
    return any(value is not None for value in curve.fitness)


def shortened(curve: Curve) -> Curve:
    """Means of at most `MOST_POINTS` equal parts, each at its last env step."""
    size = len(curve.env_steps)
    parts = min(size, MOST_POINTS)
    ends = [curve.env_steps[(index + 1) * size // parts - 1] for index in range(parts)]
    return Curve(tuple(ends), tuple(resample(curve.fitness, MOST_POINTS)))


def _mean_line(trainings: PlottedTrainings, places: Sequence[int]) -> Chart:
    rows = [_interpolated(curve, places) for curve in trainings.curves if _is_known(curve)]
    columns = [
        [value for value in column if value is not None] for column in zip(*rows, strict=True)
    ]
    whole = [column if len(column) == len(rows) else [] for column in columns]
    line: Chart = {
        "name": trainings.name,
        "role": trainings.role,
        "values": [statistics.fmean(column) if column else None for column in whole],
    }
    if len(rows) > 1 and trainings.role != "attempt":
        edges = [_edges(column) for column in whole]
        line |= {"low": [low for low, _ in edges], "high": [high for _, high in edges]}
    return line


def _edges(column: Sequence[float]) -> tuple[float | None, float | None]:
    if not column:
        return None, None
    mean, deviation = statistics.fmean(column), statistics.stdev(column)
    return mean - deviation, mean + deviation


def _interpolated(curve: Curve, places: Sequence[int]) -> list[float | None]:
    """Fitness at these env steps; None before the first known value and after the last."""
    known = [
        (steps, value)
        for steps, value in zip(curve.env_steps, curve.fitness, strict=True)
        if value is not None
    ]
    steps = [place for place, _ in known]
    found: list[float | None] = []
    for place in places:
        after = bisect_left(steps, place)
        if after < len(known) and steps[after] == place:
            found.append(known[after][1])
        elif 0 < after < len(known):
            (left, low), (right, high) = known[after - 1], known[after]
            found.append(low + (high - low) * (place - left) / (right - left))
        else:
            found.append(None)
    return found


def fitness_per_iteration(
    attempts: Sequence[Attempt], baselines: Sequence[Score], unit_note: str
) -> Chart | None:
    """Best and median attempt of each iteration, and the baselines as level lines; None without a
    trained attempt. Of more than `MOST_POINTS` iterations the best of so many parts is drawn."""
    by_number: dict[int, list[float]] = {}
    for attempt in attempts:
        if attempt.merit is not None:
            by_number.setdefault(attempt.iteration + 1, []).append(attempt.merit)
    known = sorted(by_number.items())
    if not known:
        return None
    measure = measure_of(attempts)
    if measure != "fitness":  # baselines have none, and no unit
        baselines, unit_note = (), ""
    parts = min(len(known), MOST_POINTS)
    bounds = [index * len(known) // parts for index in range(parts + 1)]
    groups = [known[start:end] for start, end in itertools.pairwise(bounds)]
    best = [max(max(fitness) for _, fitness in group) for group in groups]
    pooled = ([value for _, fitness in group for value in fitness] for group in groups)
    series: list[Chart] = [
        {"name": f"{role} attempt", "role": role, "values": [_finite(value) for value in values]}
        for role, values in {"best": best, "median": map(statistics.median, pooled)}.items()
    ]
    for score in baselines:
        if (mean := _finite(score.mean)) is None:
            continue
        line: Chart = {"name": score.name, "role": score.name, "values": [mean] * parts}
        if (deviation := _finite(score.std)) is not None:
            line |= {"low": [mean - deviation] * parts, "high": [mean + deviation] * parts}
        series.append(line)
    return {
        "kind": "lines",
        "x": {
            "label": "iteration",
            "format": "number",
            "values": [group[-1][0] for group in groups],
        },
        "y": {"label": f"{measure}{unit_note}"},
        "series": series,
    }


def scores_with_error_bars(
    scores: Sequence[Score], best: str, unit_note: str, *, own: bool = False
) -> Chart | None:
    """Mean, standard deviation and single seeds of each score; None without a known one. `best`:
    name of the best attempt; `own`: the attempt is a person's own reward."""
    rows = []
    for score in scores:
        baseline = score.name in BASELINES
        mean, deviation = _finite(score.mean), _finite(score.std)
        ends = [None, None] if mean is None else [mean - (deviation or 0), mean + (deviation or 0)]
        rows.append(
            {
                "name": "your reward" if own and not baseline else score.name,
                "role": score.name if baseline else "best" if score.name == best else "attempt",
                "mean": mean,
                "low": ends[0],
                "high": ends[1],
                "points": [value for each in score.fitness if (value := _finite(each)) is not None],
            }
        )
    if all(row["mean"] is None for row in rows):
        return None
    return {
        "kind": "scores",
        "x": {"label": "reward"},
        "y": {"label": f"fitness{unit_note}"},
        "spread": SPREAD,
        "point": "one seed",
        "rows": rows,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def figure(chart: Chart | None, title: str, note: str = "") -> Markup:
    """Element of a chart; empty for None."""
    if chart is None:
        return Markup()
    body = Markup(
        '<figure class="chart"><figcaption><b>{}</b><span>{}</span></figcaption>'
        '<script type="application/json">{}</script></figure>'
    )
    words = (escape_unprintable(wording.title(text)) for text in (title, note))
    return body.format(*words, script_json(chart))


def script_json(value: object) -> Markup:
    """JSON that no text in it can end, within a script element."""
    text = json.dumps(_rounded(value), allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _rounded(value: object) -> object:
    """The value with six digits of each fraction, null for no number, and visible text."""
    match value:
        case dict():
            return {name: _rounded(each) for name, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
        case float():
            return float(f"{value:.6g}") if math.isfinite(value) else None
        case str():
            return escape_unprintable(value)
    return value
