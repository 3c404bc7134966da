"""Gymnasium's action spaces: sizes, choices, and what the numbers of an action are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy
from gymnasium import spaces
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.records import MOST_CHOICES
from eureka_agent.simulation.action_conversion import Conversion, box_ends
from eureka_agent.task import Channel

_MOST_WORDS = 400
_IN_A_LIST = re.compile(r"^[ \t]*[-*][ \t]*`?(\d+)`?[ \t]*[:=][ \t]*(.+)$", re.MULTILINE)
_SECTION = re.compile(r"^## Action Space[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_WRAP_HINT = "write a folder whose env.py has `def make()`, which returns the environment with {}"


def check_actions(label: str, space: spaces.Space) -> None:
    """Raises EnvironmentLoadError for an action space that no policy supports."""
    known = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    if not isinstance(space, known):
        raise EnvironmentLoadError(
            f"{label} has the action space {space}, expected Box, Discrete, MultiDiscrete or"
            " MultiBinary",
            _WRAP_HINT.format("its actions wrapped"),
        )
    if not num_actions(space):
        raise EnvironmentLoadError(
            f"{label} has the action space {space}, which has no numbers",
            _WRAP_HINT.format("at least one number in its action space"),
        )
    count = sum(action_choices(space))
    if count > MOST_CHOICES:
        raise EnvironmentLoadError(
            f"{label} has {count:,} choices, expected at most {MOST_CHOICES:,}",
            _WRAP_HINT.format("fewer of them"),
        )


def action_choices(space: spaces.Space) -> tuple[int, ...]:
    """Number of choices for each entry of an action; empty for a Box."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(count) for count in space.nvec.reshape(-1))
    if isinstance(space, spaces.MultiBinary):
        return (2,) * spaces.flatdim(space)
    return ()


def num_actions(space: spaces.Space) -> int:
    """Entries of an action."""
    return len(action_choices(space)) or spaces.flatdim(space)


def action_converter(space: spaces.Space) -> Callable[[Tensor], list[Any]]:
    """Make a function from a policy's actions, shape (n, m), to one action for each copy."""
    conversion = Conversion(space)
    return lambda actions: conversion.to_space(actions.cpu().numpy())


def trial_actions(space: spaces.Space) -> Callable[[], Any]:
    """Make a function that draws an action: the space's own, which has no sensible numbers for an
    entry without a bound, or raises for it; then a policy's."""
    ends = box_ends(space) if isinstance(space, spaces.Box) else ()
    given = (space.low, space.high) if isinstance(space, spaces.Box) else ()
    if all(map(numpy.array_equal, ends, (each.reshape(-1) for each in given))):
        return space.sample
    conversion, size = Conversion(space), num_actions(space)
    return lambda: conversion.to_space(space.np_random.uniform(-1.0, 1.0, (1, size)))[0]


def action_channels(space: spaces.Space, text: str = "") -> tuple[Channel, ...]:
    """Names and ranges of a policy's action. `text`: the docstring, which may describe choices."""
    if isinstance(space, spaces.Discrete):
        return (Channel("choice", doc=choice_words(text, space)),)
    channels = []
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        counts = numpy.array(action_choices(space)).reshape(space.shape)
        for index in numpy.ndindex(*counts.shape):
            name = f"choice[{','.join(map(str, index))}]"
            channels.append(Channel(name, doc=f"{name} 0 to {counts[index] - 1}"))
        return tuple(channels)
    assert isinstance(space, spaces.Box)
    ends = zip(*(each.tolist() for each in box_ends(space)), strict=True)
    given = (space.low.reshape(-1).tolist(), space.high.reshape(-1).tolist())
    for index, (low, high), bounds in zip(
        numpy.ndindex(space.shape), ends, zip(*given, strict=True), strict=True
    ):
        doc = "" if (low, high) == bounds else f"of {bounds[0]:g} to {bounds[1]:g}"
        if low == high:
            doc = f"fixed at {low:g}"
        elif space.dtype.kind != "f":
            doc = f"{doc}{', ' if doc else ''}rounded to a whole number"
        name = f"action[{','.join(map(str, index))}]"
        channels.append(Channel(name, (), "?", doc=doc, range=(low, high) if low < high else None))
    return tuple(channels)


def choice_words(text: str, space: spaces.Discrete) -> str:
    """Choices as listed in the docstring, `0 push cart to the left, 1 …`; empty if incomplete."""
    section = _SECTION.search(text)
    listed = _IN_A_LIST.findall(section.group(1)) if section else []
    found = listed or (_in_a_table(section.group(1)) if section else [])
    if [int(number) for number, _ in found] != list(range(space.start, space.start + space.n)):
        return ""
    joined = ", ".join(f"{index} {_plain(what)}" for index, (_, what) in enumerate(found))
    return joined if len(joined) <= _MOST_WORDS else ""


def _in_a_table(text: str) -> list[tuple[str, str]]:
    """Number and text of each row of a Markdown table with a column Action."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.strip().startswith("|")
    ]
    titles = [cell.lower() for cell in rows[0]] if rows else []
    if "action" not in titles:
        return []
    column = titles.index("action")
    return [(row[0], row[column]) for row in rows if len(row) == len(titles) and row[0].isdecimal()]


def _plain(words: str) -> str:
    words = words.strip(" .*`")
    return words[:1].lower() + words[1:]
