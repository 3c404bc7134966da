"""An evaluated episode as a compact table: rows that say something of their own, at the moments that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.redundancy import Columns, KnownColumns
from eureka_agent.analysis.reflection import number
from eureka_agent.records import TaskDescription, VariableSpec

Episode = Mapping[str, npt.NDArray[np.generic]]

POINTS = 8
"""Points in time of an episode that lasted; their distances double, so that its beginning is seen."""
POINTS_BEFORE_A_FAILURE = 5
BEFORE_THE_END = (20, 10, 5, 2, 0)
"""Steps before the last one that the table of a failed episode shows besides: what ended it happened there."""
FIRST_SHARE = 1 / 64
"""The second point's part of the episode."""
MOST_ROWS = 24
"""Rows of a table, which bound what an environment with many variables costs."""
MOST_ENTRIES = 4
"""Entries of a vector that are shown together; of a longer one the `MOVING_ENTRIES` that change most."""
MOVING_ENTRIES = 2
STILL = 1e-3
"""Range of a column, as a part of its size, below which it is constant."""
MOST_COMPARED = 64
"""Columns of one variable that are looked at, those that move most: a camera has thousands."""
LARGEST = 1e100
"""Size up to which numbers are told apart, so that their squares are finite."""
_IMPLIED = ("terminated", "succeeded")
"""Variables that the episode's heading tells."""


@dataclass(frozen=True)
class _Row:
    """A variable as the table shows it."""

    variable: VariableSpec
    entries: tuple[int, ...]
    """Columns that are shown."""
    values: Columns
    """Shape: (steps, columns)."""

    @property
    def label(self) -> str:
        """Name, the entry where a vector's entries stand by themselves, and unit."""
        unit = f" [{self.variable.unit}]"
        if len(self.entries) == self.values.shape[1]:
            return f"{self.variable.name}{unit}"
        return f"{self.variable.name}{[*self.entries]}{unit}"

    def cell(self, place: int) -> str:
        """Its entries at a step."""
        shown = [number(float(self.values[place, entry])) for entry in self.entries]
        return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def trajectory_table(episode: Episode, description: TaskDescription) -> str:
    """The public variables at up to ten points in time, one a line, with the unit. `episode`: arrays of shape (steps, …).

    A variable that is constant, or moves with another one, stands below the table. Of a vector with many entries those are shown that move most.
    """
    public = [
        each for each in description.public_variables() if each.name in episode and _is_numeric(episode[each.name])
    ]
    steps = max((len(episode[variable.name]) for variable in public), default=0)
    public = [variable for variable in public if len(episode[variable.name]) == steps]
    if steps == 0:
        return "no steps"
    places = moments(steps, failed(episode))
    columns = {variable.name: _columns(episode[variable.name], steps) for variable in public}
    shown, constant, same = _rows([each for each in public if each.name not in _IMPLIED], columns)
    rows = [("time [s]", [number(float((place + 1) * description.control_dt)) for place in places])]
    if "fitness" in episode and episode["fitness"].shape == (steps,):
        rows.append(("fitness a step", [number(float(episode["fitness"][place])) for place in places]))
    rows += [(row.label, [row.cell(place) for place in places]) for row in shown[:MOST_ROWS]]
    width = max(len(label) for label, _ in rows)
    lines = [f"{label:<{width}}  {'  '.join(cells)}" for label, cells in rows]
    if constant:
        lines.append(f"constant: {', '.join(constant[:MOST_ROWS])}")
    if same:
        lines.append(f"moves with another: {', '.join(same[:MOST_ROWS])}")
    if len(shown) > MOST_ROWS:
        lines.append(f"not shown: {', '.join(row.variable.name for row in shown[MOST_ROWS : 2 * MOST_ROWS])}")
    return "\n".join(lines)


def failed(episode: Episode) -> bool:
    """True where an episode ended by a failure, not by its time."""
    return "terminated" in episode and bool(np.any(episode["terminated"].reshape(-1)[-1:]))


def succeeded(episode: Episode) -> bool:
    """True where an episode ended by a success."""
    return "succeeded" in episode and bool(np.any(episode["succeeded"].reshape(-1)[-1:]))


def moments(steps: int, ended_by_failure: bool) -> list[int]:
    """The steps that are shown: dense at first, and before a failure."""
    count = POINTS_BEFORE_A_FAILURE if ended_by_failure else POINTS
    # halves go up, whatever the last digit of a machine's powers
    spread = np.floor(np.geomspace(max(1.0, FIRST_SHARE * steps), steps, count - 1) + 0.5 + 1e-6).astype(int) - 1
    last = [steps - 1 - before for before in BEFORE_THE_END if before < steps] if ended_by_failure else []
    return sorted({0, *(int(place) for place in spread), *last})


def _is_numeric(values: npt.NDArray[np.generic]) -> bool:
    return values.ndim > 0 and values.dtype.kind in "biuf"


def _columns(values: npt.NDArray[np.generic], steps: int) -> Columns:
    columns = np.nan_to_num(values.reshape(steps, -1).astype(np.float64))
    return np.clip(columns, -LARGEST, LARGEST)


def _rows(variables: list[VariableSpec], columns: Mapping[str, Columns]) -> tuple[list[_Row], list[str], list[str]]:
    """The rows of the table, what is constant with its value, and what says the same as a row with that row's name."""
    known = KnownColumns(max(len(values) for values in columns.values()))
    rows: dict[str, _Row] = {}
    constant, same = [], []
    # short vectors first: they are shown whole, so a number that is one of their entries needs no row
    order = sorted(variables, key=lambda each: (_kind(columns[each.name].shape[1]), variables.index(each)))
    for variable in order:
        values = columns[variable.name]
        moving = _moving(values)
        if not moving:
            constant.append(_constant(variable.name, values[0]))
            continue
        twins = dict(zip(moving, known.twins(values[:, moving]), strict=True))
        # those too that are not shown: what moves with an entry of another row says nothing of its own
        single = values.shape[1] == 1
        known.add([variable.name if single else f"{variable.name}[{entry}]" for entry in moving], values[:, moving])
        own = [entry for entry in moving if not twins[entry]]
        if not own:
            same.append(f"{variable.name} with {twins[moving[0]]}")
            continue
        many = values.shape[1] > MOST_ENTRIES
        entries = _most_moving(values, own) if many else tuple(range(values.shape[1]))
        rows[variable.name] = _Row(variable, entries, values)
    return [rows[variable.name] for variable in variables if variable.name in rows], constant, same


def _moving(values: Columns) -> list[int]:
    """Columns that change, in their order; of many those that change most."""
    ranges = np.ptp(values, axis=0)
    moving = np.flatnonzero(ranges > STILL * np.abs(values).max(axis=0))
    most = moving[np.argsort(-ranges[moving], kind="stable")[:MOST_COMPARED]]
    return sorted(int(entry) for entry in most)


def _most_moving(values: Columns, candidates: list[int]) -> tuple[int, ...]:
    """The entries that change most, none of which moves with another of them."""
    chosen: list[int] = []
    known = KnownColumns(len(values))
    for entry in sorted(candidates, key=lambda each: (-float(np.ptp(values[:, each])), each)):
        column = values[:, [entry]]
        if len(chosen) < MOVING_ENTRIES and not known.twins(column)[0]:
            chosen.append(entry)
            known.add([str(entry)], column)
    return tuple(sorted(chosen))


def _kind(size: int) -> int:
    """Short vectors, single numbers, long vectors."""
    return 1 if size == 1 else 0 if size <= MOST_ENTRIES else 2


def _constant(name: str, values: npt.NDArray[np.float64]) -> str:
    if len(values) > MOST_ENTRIES:
        return name
    text = ", ".join(number(float(value)) for value in values)
    return f"{name} {text}" if len(values) == 1 else f"{name} ({text})"
