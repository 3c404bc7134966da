"""Events of an episode: steps at which variables jump, as a goal that is set anew or a contact that
begins. What a table says at such a moment is about the next part of the episode, not the last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.curves import number
from eureka_agent.records import VariableSpec

USUAL = 0.9
"""Share of an episode's steps whose changes are usual."""
JUMP = 5.0
"""A jump is so many times the largest usual change …"""
PART = 0.1
"""… and so much of the variable's whole range in the episode."""
MOST_JUMPS = 12
"""A variable with more of them in an episode jumps usually."""
LEAST_PART = 0.1
"""Least part of an episode between two jumps that counts as one."""
MOST_NAMED = 3
_TURNS = {"rad": 2 * math.pi, "deg": 360.0}
"""Change of an angle that goes on at its other end."""
_WITHIN_A_TURN = 0.2
_NOT_OF_THE_TASK = ("actions", "terminated", "succeeded")


Episode = Mapping[str, npt.NDArray[np.generic]]
"""Arrays of shape (steps, …), by variable."""
Columns = npt.NDArray[np.float64]
"""Shape: (steps, columns)."""
LARGEST = 1e100
"""Bound on numbers, so that their squares are finite."""


def is_whole(values: npt.NDArray[np.generic] | None, steps: int) -> bool:
    """True for numbers of all steps."""
    return (
        values is not None
        and values.ndim > 0
        and values.dtype.kind in "biuf"
        and len(values) == steps
    )


def as_columns(values: npt.NDArray[np.generic], steps: int) -> Columns:
    """The values of a variable, bounded."""
    columns = np.nan_to_num(values.reshape(steps, -1).astype(np.float64))
    return np.clip(columns, -LARGEST, LARGEST)


def length_of(episode: Episode) -> int:
    """Steps of an episode."""
    return max((len(values) for values in episode.values() if values.ndim), default=0)


@dataclass(frozen=True)
class Event:
    """Some variables jump at a step: the first with their new values."""

    step: int
    names: tuple[str, ...]
    """The largest jump first, in parts of its range."""


def events_of(episode: Episode, variables: Sequence[VariableSpec]) -> tuple[Event, ...]:
    """Events in order. Jumps of steps in a row are one event."""
    sizes: dict[int, dict[str, float]] = {}
    steps = length_of(episode)
    for variable in variables:
        values = episode.get(variable.name)
        if values is None or variable.name in _NOT_OF_THE_TASK or not is_whole(values, steps):
            continue
        for step, size in _jumps(as_columns(values, steps), variable.unit).items():
            sizes.setdefault(step, {})[variable.name] = size
    found: list[Event] = []
    together: dict[str, float] = {}
    begun = 0
    for step in sorted(sizes):
        if step - 1 not in sizes:
            begun, together = step, {}
        together |= {name: max(size, together.get(name, 0)) for name, size in sizes[step].items()}
        if step + 1 not in sizes:
            names = sorted(together, key=lambda name: -together[name])  # a stable sort
            found.append(Event(begun, tuple(names)))
    return tuple(found)


def _jumps(values: Columns, unit: str) -> dict[int, float]:
    """Steps at which an entry jumps, with the jump's part of the entry's range."""
    if len(values) < 2:
        return {}
    changes, ranges = np.abs(np.diff(values, axis=0)), np.ptp(values, axis=0)
    usual = np.quantile(changes, USUAL, axis=0, method="lower")
    jumps = (changes > JUMP * usual) & (changes >= PART * ranges) & (ranges > 0)
    if (turn := _TURNS.get(unit)) is not None:
        jumps &= np.abs(changes - turn) > _WITHIN_A_TURN * turn
    jumps &= jumps.sum(axis=0) <= MOST_JUMPS
    parts = np.divide(changes, ranges, out=np.zeros_like(changes), where=ranges > 0)
    largest = np.where(jumps, parts, 0.0).max(axis=1, initial=0.0)
    return {int(step) + 1: float(largest[step]) for step in np.flatnonzero(largest)}


def slices_of(lengths: Sequence[int]) -> list[slice]:
    """Places of episodes of these lengths, one after the other."""
    ends = itertools.accumulate(lengths)
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def numbers_of(values: Sequence[float | None]) -> Columns:
    """The values as numbers, NaN for None. Shape: (values,)."""
    return np.array([np.nan if each is None else each for each in values], dtype=np.float64)


def parts_between(jumps: Sequence[int], steps: int) -> list[slice]:
    """Parts of an episode between its jumps that are long enough; none without a jump."""
    bounds = itertools.pairwise([0, *jumps, steps]) if jumps else ()
    return [slice(a, b) for a, b in bounds if b - a >= LEAST_PART * steps]


def quarter_means(values: Columns, parts: Sequence[slice]) -> tuple[float | None, ...]:
    """Means of the finite numbers in the quarters of such parts; empty without parts. Shape of the
    values: (steps,)."""
    quarters = zip(*(np.array_split(values[part], 4) for part in parts), strict=True)
    return tuple(finite_mean(np.concatenate(each)) for each in quarters)


def finite_mean(values: Columns) -> float | None:
    """Mean of the finite numbers; None without any."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def events_text(events: Sequence[Event], control_dt: float) -> str:
    """A line on the events of one episode; empty without any."""
    if not events:
        return ""
    parts = []
    for event in events[:MOST_JUMPS]:
        named = ", ".join(event.names[:MOST_NAMED])
        more = len(event.names) - MOST_NAMED
        named += f" and {more} more" if more > 0 else ""
        parts.append(f"{number(event.step * control_dt)} s {named}")
    return f"jumps after {'; '.join(parts)}"
