"""Gymnasium's observation spaces as vectors for a policy and named variables for a reward."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy
from gymnasium import spaces
from numpy.typing import NDArray

from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.reward_names import is_argument_name
from eureka_agent.simulation.gymnasium_actions import MOST_FLOAT
from eureka_agent.task import PREVIOUS_PREFIX, Channel, Variable

Path = tuple[Any, ...]
"""Keys of an entry from the outermost Dict on."""
_WRAP_HINT = (
    "in a folder's env.py write `def make()`, which returns it in a wrapper that {};"
    " see docs/your-own-environment.md"
)
_IMAGE_DIMENSIONS = 3
_MOST_OF_A_GRID = 1023
"""Most numbers of an image-like array that is a grid of symbols, which a perceptron can take."""
_MOST_NAMED = 4096
"""Most numbers of an observation that get a name each."""


@dataclass(frozen=True)
class Entry:
    path: Path
    variable: Variable
    columns: slice
    """Columns in the row of `entry_values`."""


def check_observations(label: str, space: spaces.Space) -> None:
    """Raises EnvironmentLoadError for observations that a perceptron cannot take."""
    what = f"the observation of {label}"
    for path, leaf in _leaves(space):
        entry = f"the entry {_joined(path)!r} of {what}" if path else what
        if isinstance(leaf, spaces.Tuple | spaces.OneOf) and path:
            fault, wrapper = f"is a {leaf}, whose parts have no names", "makes a Dict of it"
        elif isinstance(leaf, spaces.Box) and _is_image(leaf):
            raise image_error(entry, f" of shape {leaf.shape!r}")
        elif not _is_flattenable(leaf):
            fault = f"is a {leaf}, expected numbers of a fixed size"
            wrapper = "leaves it out or turns it into a Box"
        else:
            continue
        raise EnvironmentLoadError(f"{entry} {fault}", _WRAP_HINT.format(wrapper))
    if not num_observations(space):
        hint = _WRAP_HINT.format("observes at least one")
        raise EnvironmentLoadError(f"{what} is a {space}, which has no numbers", hint)


def image_error(what: str, shape: str) -> EnvironmentLoadError:
    """The error for an observation that is an image; `shape` in words, empty if unknown."""
    return EnvironmentLoadError(
        f"{what} is an image{shape}, expected a vector: policies here have no convolutions",
        _WRAP_HINT.format("gives the simulator's state or other numbers in place of the image"),
    )


def named_entries(
    label: str, space: spaces.Space, described: Sequence[Variable]
) -> tuple[Entry, ...]:
    """Entries of a Dict space as variables, nested keys joined by `_`, or as `described`; empty for
    another space. Raises EnvironmentLoadError for names that are double or no entry."""
    words = {variable.name: variable for variable in described}
    entries: dict[str, Entry] = {}
    start = 0
    for path, leaf in _leaves(space) if isinstance(space, spaces.Dict) else ():
        variable = _variable(path, leaf)
        name, shape = variable.name, variable.shape
        if given := words.pop(name, None):
            if given.shape != shape:
                raise EnvironmentLoadError(
                    f"the variable {name!r} has the shape {given.shape!r}, but the entry of {label}"
                    f" has {shape!r}",
                    "correct the Variable's shape",
                )
            variable = replace(given, range=given.range or variable.range)
        stop = start + math.prod(shape)
        entries[name] = Entry(path, variable, slice(start, stop))
        start = stop
    for name in words:
        hint = "entries have names in a Dict space; name parts of a vector with named_observations"
        what = f"the variable {name!r} describes no entry of the observation of {label}"
        raise EnvironmentLoadError(what, did_you_mean(name, entries) if entries else hint)
    return tuple(entries.values())


def entry_values(
    entries: Sequence[Entry], observation: Mapping[Any, Any]
) -> NDArray[numpy.float32]:
    """Values of all entries in one row, in the columns of `Entry.columns`."""
    values = (numpy.asarray(_at(observation, each.path), numpy.float32) for each in entries)
    return numpy.concatenate([value.reshape(-1) for value in values])


def _at(observation: Any, path: Path) -> Any:
    return reduce(lambda part, key: part[key], path, observation)


def num_observations(space: spaces.Space) -> int:
    return sum(spaces.flatdim(leaf) for _, leaf in _leaves(space))


def flatten(space: spaces.Space, observation: Any) -> NDArray[numpy.float32]:
    """One vector for the policy. Shape: (num_observations,)."""
    given = observation
    if isinstance(space, spaces.Dict):  # Gymnasium cannot flatten one without numbers
        parts = [(leaf, _at(observation, path)) for path, leaf in _leaves(space)]
        given = numpy.concatenate([spaces.flatten(*part) for part in parts])
    elif not isinstance(space, spaces.Box):
        given = spaces.flatten(space, observation)
    flat = numpy.asarray(given).reshape(-1)
    if flat.dtype.kind in "cSU":
        raise TypeError(f"it is of type {flat.dtype}")
    return numpy.asarray(flat, dtype=numpy.float32)


def _bounds(space: spaces.Space) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Smallest and largest value of each number of a space, in its shape."""
    low, high = numpy.zeros(space.shape or ()), numpy.ones(space.shape or ())
    if isinstance(space, spaces.Box):
        low, high = space.low, space.high
    elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        count = space.n if isinstance(space, spaces.Discrete) else space.nvec
        low, high = space.start, space.start + count - 1
    return numpy.asarray(low, numpy.float64), numpy.asarray(high, numpy.float64)


def number_name(space: spaces.Space, index: int) -> str:
    """Name of a number in `flatten`'s vector: `entry 'speed', index 1`, or `index 4`."""
    start = 0
    for path, leaf in _leaves(space):
        size = spaces.flatdim(leaf)
        if path and index < start + size:
            return f"entry {_joined(path)!r}" + (f", index {index - start}" if size > 1 else "")
        start += size
    return f"index {index}"


def limits(space: spaces.Space) -> tuple[float, float] | None:
    """Smallest and largest value of a space; None for an unbounded or constant one."""
    lowest, highest = _bounds(space)
    low, high = float(lowest.min()), float(highest.max())
    return (low, high) if -MOST_FLOAT < low < high < MOST_FLOAT else None


def observation_channels(
    space: spaces.Space, entries: Sequence[Variable], parts: Sequence[tuple[Variable, int | slice]]
) -> tuple[Channel, ...]:
    """Channels of `flatten`'s numbers, by `entries` of a Dict or `parts`; empty without names."""
    size = num_observations(space)
    if size > _MOST_NAMED:
        return ()
    if not parts and isinstance(space, spaces.Dict):
        described = {variable.name: variable for variable in entries}
        return tuple(_channel(path, leaf, described) for path, leaf in _leaves(space))
    columns = [Channel(f"observation[{index}]", unit="?", frame="?") for index in range(size)]
    for variable, place in parts:
        indices = range(size)[place] if isinstance(place, slice) else (range(size)[place],)
        for number, index in enumerate(indices):
            name = variable.name if isinstance(place, int) else f"{variable.name}[{number}]"
            columns[index] = Channel(name, (), variable.unit, variable.frame, variable.doc)
    return tuple(columns) if parts else ()


def _channel(path: Path, leaf: spaces.Space, described: Mapping[str, Variable]) -> Channel:
    """The channel of a Dict's entry, whose choices are 1 among zeros."""
    plain = Variable(_name(path), (), "?", "?", f"entry {_joined(path)!r} of the observation")
    variable = described.get(plain.name, plain)
    doc = variable.doc
    if isinstance(leaf, spaces.Discrete | spaces.MultiDiscrete):
        numbers = [f"is_{index}" for index in range(spaces.flatdim(leaf))]
        doc += "; 1 at each value, counted on from the first, else 0"
    else:
        indices = numpy.ndindex(*leaf.shape) if leaf.shape else ()
        numbers = [",".join(map(str, index)) for index in indices]
    return Channel(plain.name, tuple(numbers), variable.unit, variable.frame, doc)


def _leaves(space: spaces.Space, path: Path = ()) -> Iterator[tuple[Path, spaces.Space]]:
    """Spaces within Dicts with their keys, in Gymnasium's order; without texts and empty ones."""
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            yield from _leaves(inner, (*path, key))
    elif 0 not in (space.shape or ()) and not _is_text(space):
        yield path, space


def _is_image(space: spaces.Box) -> bool:
    is_flat = len(space.shape) == 2 and space.dtype == numpy.uint8
    like_one = len(space.shape) >= _IMAGE_DIMENSIONS or is_flat
    return like_one and math.prod(space.shape) > _MOST_OF_A_GRID


def _is_flattenable(space: spaces.Space) -> bool:
    try:
        return space.is_np_flattenable
    except NotImplementedError:  # a package's own space
        return False


def _is_text(space: spaces.Space) -> bool:
    """True for `spaces.Text`, and for other packages' spaces of texts."""
    return isinstance(space, spaces.Text) or (space.dtype is not None and space.dtype.kind == "U")


def _variable(path: Path, space: spaces.Space) -> Variable:
    """The entry as a variable; a Discrete one is its number, where the policy gets a one-hot."""
    doc = f"entry {_joined(path)!r} of Gymnasium's observation"
    whole = isinstance(space, spaces.Discrete | spaces.MultiDiscrete)
    shape = () if isinstance(space, spaces.Discrete) else tuple(space.shape or ())
    unit = "1" if whole or isinstance(space, spaces.MultiBinary) else "?"
    doc += ", a whole number" if whole else ""
    return Variable(_name(path), shape, unit, "?", doc, limits(space))


def _joined(path: Path) -> str:
    return ".".join(map(str, path))


def _name(path: Path) -> str:
    # as Python reads names
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", "_".join(map(str, path))))
    if name in ("actions", "terminated", "native_reward") or name.startswith(PREVIOUS_PREFIX):
        return f"observed_{name}"
    return name if is_argument_name(name) else f"entry_{name}"
