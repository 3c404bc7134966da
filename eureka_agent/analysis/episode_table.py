"""The worst and the best evaluated episode as compact tables of the same rows, without columns that
follow from another one: its magnitude, sine or cosine."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.curves import number
from eureka_agent.analysis.events import (
    Columns,
    Episode,
    as_columns,
    events_of,
    events_text,
    is_whole,
    length_of,
)
from eureka_agent.array_files import failed
from eureka_agent.records import TaskDescription, VariableSpec

SAME = 0.99
"""Correlation over all episodes from which a column is redundant; clipping lowers it slightly."""
ROUNDING = 1e-3
"""Relative difference allowed between the lengths of one vector in two frames."""
LEAST_STEPS = 5


class KnownColumns:
    """Named columns that others are compared with."""

    def __init__(self, steps: int) -> None:
        self._names: list[str] = []
        self._columns = np.zeros((steps, 0))

    def add(self, names: Sequence[str], columns: Columns, *, angles: bool = False) -> None:
        """Add columns and their magnitudes; for angles their cosines and sines too."""
        self._take(names, columns)
        self._take([f"|{name}|" for name in names], np.abs(columns))
        if angles:
            self._take([f"cos {name}" for name in names], np.cos(columns))
            self._take([f"sin {name}" for name in names], np.sin(columns))

    def _take(self, names: Sequence[str], columns: Columns) -> None:
        self._names += names
        self._columns = np.hstack((self._columns, _standard(columns)))

    def twins(self, columns: Columns) -> list[str]:
        """Names of the first known columns that make each column redundant; empty if none."""
        if len(columns) < LEAST_STEPS or not self._names:
            return [""] * columns.shape[1]
        found = np.abs(_standard(columns).T @ self._columns) > SAME
        return [self._names[row.argmax()] if row.any() else "" for row in found]


def is_turned(first: Columns, second: Columns) -> bool:
    """True where two vectors have the same length at every step: one vector in two frames."""
    if first.shape != second.shape or first.shape[1] < 2 or len(first) < LEAST_STEPS:
        return False
    length, other = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    return bool(np.allclose(length, other, rtol=ROUNDING, atol=ROUNDING * float(length.max())))


def is_quaternion(columns: Columns) -> bool:
    """True for four columns of length 1 at every step."""
    return columns.shape[1] == 4 and bool(
        np.allclose(np.linalg.norm(columns, axis=1), 1.0, atol=ROUNDING)
    )


def _standard(columns: Columns) -> Columns:
    """Centre each column and scale it to norm 1: products are then Pearson's correlations."""
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    return np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)


SPREAD = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Parts of an episode with a column besides its end: dense at first, gaps up to a quarter."""
BEFORE_A_FAILURE_S = (0.2, 0.5, 1.0)
"""Seconds before a failure with a further column: the failure began there."""
LEAST_GAP_S = 0.1
"""Least time between columns, unless a sixteenth of the episode is shorter."""
MOST_CUTS = 6
"""Most events of an episode that each have a column before them."""
MOST_ROWS = 24
MOST_ENTRIES = 4
"""Most entries of a vector that are shown one by one; a longer one is shown by its mean size."""
MOST_CHOICES_SHOWN = 3
STILL = 1e-3
"""Range of a column, relative to its magnitude, below which it is constant."""
MOST_COMPARED = 64
"""Most columns of one variable that are compared, those that move most: a camera has thousands."""
LEGEND = (
    "The columns of the tables end at their times. Rows called mean are means since the column"
    " before; |x| is the mean size of all entries."
)
_IMPLIED = ("terminated", "succeeded")
_TILT, _TURN = ("upright", "gravity", "pitch", "roll"), ("heading", "yaw")
"""Words in the names of variables that together replace a quaternion, and are readable."""
_FORCES = ("N", "N·m", "Nm", "W")


@dataclass(frozen=True)
class _Row:
    """A variable in the tables."""

    variable: VariableSpec
    columns: int
    are_choices: bool = False

    @property
    def is_long(self) -> bool:
        return self.columns > MOST_ENTRIES

    @property
    def is_mean(self) -> bool:
        """True for quantities that oscillate within a stride: rates, forces, contacts, joints."""
        variable = self.variable
        swings = "/s" in variable.unit or variable.unit in _FORCES or variable.frame == "joint"
        return self.is_long or swings or variable.name == "actions" or "contact" in variable.name

    @property
    def label(self) -> str:
        if self.are_choices:
            return f"shares of {self.variable.name} [choice]"
        name = f"|{self.variable.name}|" if self.is_long else self.variable.name
        return f"{'mean ' if self.is_mean else ''}{name} [{self.variable.unit}]"

    def cell(self, values: Columns, after: int, place: int) -> str:
        """Entries at a step, or their means since the step `after`."""
        if self.are_choices:
            shares = [_shares(each) for each in values[after + 1 : place + 1].T]
            return shares[0] if len(shares) == 1 else f"({'; '.join(shares[:MOST_ENTRIES])})"
        shown = values[after + 1 : place + 1].mean(axis=0) if self.is_mean else values[place]
        if self.is_long:
            return number(float(np.abs(values[after + 1 : place + 1]).mean()))
        cells = [number(float(value)) for value in shown]
        return cells[0] if len(cells) == 1 else f"({', '.join(cells)})"


def trajectory_tables(
    episodes: Mapping[str, Episode], description: TaskDescription, reads: Collection[str] = ()
) -> tuple[dict[str, str], str]:
    """Tables of the public variables by episode, cut at their events, and a text on what all leave
    out: variables that are constant, or follow from another row. Of many rows those remain whose
    variables the fitness or the reward `reads`, then those in which the episodes differ most."""
    lengths = {name: length_of(episode) for name, episode in episodes.items()}
    told = {name: episode for name, episode in episodes.items() if lengths[name]}
    public = [
        variable
        for variable in description.public_variables()
        if variable.name not in _IMPLIED
        and all(
            is_whole(episode.get(variable.name), lengths[name]) for name, episode in told.items()
        )
        and len({episode[variable.name].shape[1:] for episode in told.values()}) == 1
    ]
    if not told or not public:
        return dict.fromkeys(episodes, "no steps"), ""
    columns = {
        name: {each.name: as_columns(episode[each.name], lengths[name]) for each in public}
        for name, episode in told.items()
    }
    together = {
        each.name: np.vstack([values[each.name] for values in columns.values()]) for each in public
    }
    fitness = {
        name: as_columns(episode["fitness"], lengths[name])
        for name, episode in told.items()
        if is_whole(episode.get("fitness"), lengths[name]) and episode["fitness"].ndim == 1
    }
    rate = np.vstack([*fitness.values()]) if len(fitness) == len(told) else None
    shown, constant, same = _rows(public, together, rate, bool(description.action_choices))
    told_first = {*reads, *description.fitness_variables}
    shown, hidden = _most_telling(shown, list(columns.values()), told_first)
    silent = any(each.startswith("fitness a step ") for each in (*constant, *same))
    has_rate = rate is not None and not silent
    tables = dict.fromkeys(episodes, "no steps")
    for name, episode in told.items():
        events = events_of(episode, public)
        steps = [event.step for event in events]
        places = moments(lengths[name], failed(episode), description.control_dt, steps)
        since = list(zip([-1, *places], places, strict=False))
        times = [number(float((place + 1) * description.control_dt)) for place in places]
        rows = [("time [s]", times)]
        if has_rate:
            rate_of = fitness[name]
            means = [number(float(rate_of[a + 1 : place + 1].mean())) for a, place in since]
            rows.append(("mean fitness a step", means))
        for row in shown:
            values = columns[name][row.variable.name]
            rows.append((row.label, [row.cell(values, after, place) for after, place in since]))
        width = max(len(label) for label, _ in rows)
        lines = [f"{label:<{width}}  {'  '.join(cells)}" for label, cells in rows]
        lines.append(events_text(events, description.control_dt))
        tables[name] = "\n".join(filter(None, lines))
    left_out = [f"constant: {', '.join(constant[:MOST_ROWS])}"] if constant else []
    if same:
        left_out.append(f"left out, with what says the same: {', '.join(same[:MOST_ROWS])}")
    if hidden:
        left_out.append(f"not shown: {', '.join(hidden[:MOST_ROWS])}")
    return tables, "\n".join(left_out)


def _most_telling(
    rows: list[_Row], episodes: Sequence[Mapping[str, Columns]], reads: Collection[str]
) -> tuple[list[_Row], list[str]]:
    """The rows that remain, as they were declared, and the names of the others."""

    def difference(row: _Row) -> float:
        """Largest difference of the episodes' means, in deviations of their steps."""
        values = [episode[row.variable.name] for episode in episodes]
        means = np.stack([each.mean(axis=0) for each in values])
        deviations = np.vstack(values).std(axis=0)
        return float((np.ptp(means, axis=0) / np.maximum(deviations, STILL * STILL)).max())

    if len(rows) <= MOST_ROWS:
        return rows, []
    order = sorted(rows, key=lambda row: (row.variable.name not in reads, -difference(row)))
    kept = {row.variable.name for row in order[:MOST_ROWS]}
    hidden = [row.variable.name for row in rows if row.variable.name not in kept]
    return [row for row in rows if row.variable.name in kept], hidden


def moments(
    steps: int, ended_by_failure: bool, control_dt: float, jumps: Sequence[int] = ()
) -> list[int]:
    """Steps that have a column, the last one included, with a least distance. `jumps`: steps with
    the first values after an event; there is none soon after, and one before each of a few."""
    least = max(1, min(round(LEAST_GAP_S / control_dt), int(SPREAD[0] * steps)))
    seconds = BEFORE_A_FAILURE_S if ended_by_failure else ()
    parts = SPREAD[1:] if ended_by_failure else SPREAD
    before = (steps - 1 - round(each / control_dt) for each in seconds)
    cuts = [jump - 1 for jump in jumps] if len(jumps) <= MOST_CUTS else []
    places = [steps - 1]
    for place in (*before, *cuts, *(math.ceil(part * steps) - 1 for part in parts)):
        place = next((jump - 1 for jump in jumps if jump <= place < jump + least), place)
        if place >= 0 and all(abs(place - other) >= least for other in places):
            places.append(place)
    return sorted(places)


def _rows(
    variables: Sequence[VariableSpec],
    columns: Mapping[str, Columns],
    fitness: Columns | None,
    choices: bool,
) -> tuple[list[_Row], list[str], list[str]]:
    """Rows of the tables, constant variables, and redundant ones with their replacement.
    `choices`: actions are choices."""
    known = KnownColumns(max(len(values) for values in columns.values()))
    rows: dict[str, _Row] = {}
    constant, same = [], []
    # angles first, which replace vectors of cosines and sines; then short vectors, which replace
    # single numbers that are among their entries
    sizes = {name: values.shape[1] for name, values in columns.items()}
    order = sorted(variables, key=lambda each: _kind(each, sizes[each.name]))  # a stable sort
    for variable in order:
        values = columns[variable.name]
        moving = _moving(values)
        if not moving:
            constant.append(_constant(variable.name, values[0]))
            continue
        twins = dict(zip(moving, known.twins(values[:, moving]), strict=True))
        # hidden columns as well: what correlates with an entry of another row is redundant
        single = values.shape[1] == 1
        names = [variable.name if single else f"{variable.name}[{entry}]" for entry in moving]
        known.add(names, values[:, moving], angles=variable.unit == "rad")
        if all(twins.values()):
            same.append(f"{variable.name} ({twins[moving[0]]})")
        elif said := _said_otherwise(variable, variables, columns, rows):
            same.append(f"{variable.name} ({said})")
        else:
            is_choice = choices and variable.name == "actions"
            rows[variable.name] = _Row(variable, values.shape[1], is_choice)
    if fitness is not None and not _moving(fitness):
        constant.append(_constant("fitness a step", fitness[0]))
    elif fitness is not None and (twin := known.twins(fitness)[0]):
        same.append(f"fitness a step ({twin})")
    return [rows[variable.name] for variable in variables if variable.name in rows], constant, same


def _said_otherwise(
    variable: VariableSpec,
    variables: Sequence[VariableSpec],
    columns: Mapping[str, Columns],
    rows: Mapping[str, _Row],
) -> str:
    """Name of the row that replaces a variable, such as another frame of it; empty if none."""
    values = columns[variable.name]
    if is_quaternion(values):
        body = variable.name.partition("_")[0]
        tilt = [
            each.name
            for each in variables
            if each.name.startswith(body) and any(word in each.name for word in _TILT)
        ]
        turn = [each.name for each in variables if any(word in each.name for word in _TURN)]
        return f"{tilt[0]}, {turn[0]}" if tilt and turn else ""
    for name, row in rows.items():
        other_frame = row.variable.unit == variable.unit and row.variable.frame != variable.frame
        if other_frame and is_turned(columns[name], values):
            return f"{name}, turned"
    return ""


def _moving(values: Columns) -> list[int]:
    """Columns that change, in order; of many those that change most."""
    ranges = np.ptp(values, axis=0)
    moving = np.flatnonzero(ranges > STILL * np.abs(values).max(axis=0))
    most = moving[np.argsort(-ranges[moving], kind="stable")[:MOST_COMPARED]]
    return sorted(int(entry) for entry in most)


def _kind(variable: VariableSpec, size: int) -> int:
    """Rank of single angles, short vectors, single numbers, long vectors."""
    if size == 1:
        return 0 if variable.unit == "rad" else 2
    return 1 if size <= MOST_ENTRIES else 3


def _shares(chosen: npt.NDArray[np.float64]) -> str:
    """The most frequent choices with their shares."""
    kinds, counts = np.unique(chosen, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:MOST_CHOICES_SHOWN]
    return " ".join(f"{kinds[each]:.0f}:{counts[each] / len(chosen):.0%}" for each in most)


def _constant(name: str, values: npt.NDArray[np.float64]) -> str:
    if len(values) > MOST_ENTRIES:
        return name
    text = ", ".join(number(float(value)) for value in values)
    return f"{name} {text}" if len(values) == 1 else f"{name} ({text})"
