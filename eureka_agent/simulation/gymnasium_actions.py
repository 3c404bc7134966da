"""Action spaces of Gymnasium's: a policy's numbers and what the environment takes for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy
from gymnasium import spaces
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.records import MOST_CHOICES
from eureka_agent.task import Channel

_MOST_WORDS = 400
"""Characters that say what the choices are."""
_IN_A_LIST = re.compile(r"^[ \t]*[-*][ \t]*`?(\d+)`?[ \t]*[:=][ \t]*(.+)$", re.MULTILINE)
_SECTION = re.compile(r"^## Action Space[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def check_actions(label: str, space: spaces.Space) -> None:
    """Raises EnvironmentLoadError for actions that no policy here gives."""
    known = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    if not isinstance(space, known):
        raise EnvironmentLoadError(
            f"{label} has the action space {space}, expected Box, Discrete, MultiDiscrete or"
            " MultiBinary",
            "write a folder whose env.py has `def make()`, which returns the environment with its"
            " actions wrapped",
        )
    if sum(action_choices(space)) > MOST_CHOICES:
        raise EnvironmentLoadError(
            f"{label} has {sum(action_choices(space)):,} choices, expected at most"
            f" {MOST_CHOICES:,}",
            "write a folder whose env.py has `def make()`, which returns the environment with fewer"
            " of them",
        )


def action_choices(space: spaces.Space) -> tuple[int, ...]:
    """Numbers of choices, one for each number of an action; none of a Box."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(count) for count in space.nvec.reshape(-1))
    if isinstance(space, spaces.MultiBinary):
        return (2,) * spaces.flatdim(space)
    return ()


def num_actions(space: spaces.Space) -> int:
    """Numbers of an action."""
    return len(action_choices(space)) or spaces.flatdim(space)


def action_converter(space: spaces.Space) -> Callable[[Tensor], list[Any]]:
    """A function from actions, shape (num_envs, num_actions), to those of the environments, one for
    each: Box actions are rescaled from [-1, 1], choices counted as the space does."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return lambda actions: (actions[:, 0].long() + start).tolist()
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        first = space.start.reshape(-1) if isinstance(space, spaces.MultiDiscrete) else 0
        shape = (-1, *space.shape)
        return lambda actions: list(
            (actions.long().cpu().numpy() + first).astype(space.dtype).reshape(shape)
        )
    assert isinstance(space, spaces.Box)
    bounded = numpy.isfinite(space.low) & numpy.isfinite(space.high)
    middle = numpy.where(bounded, (space.low + space.high) / 2, 0.0).reshape(-1)
    scale = numpy.where(bounded, (space.high - space.low) / 2, 1.0).reshape(-1)

    def rescaled(actions: Tensor) -> list[Any]:
        values = middle + scale * actions.cpu().numpy()
        return list(values.astype(space.dtype).reshape(-1, *space.shape))

    return rescaled


def action_channels(space: spaces.Space, text: str = "") -> tuple[Channel, ...]:
    """Names and ranges of a policy's action. `text`: the environment's docstring, which may say
    what the choices are."""
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
    for index in numpy.ndindex(space.shape):
        low, high = float(space.low[index]), float(space.high[index])
        bounded = bool(numpy.isfinite((low, high)).all()) and low < high
        doc = "" if bounded else "without bounds: taken as it is"
        name = f"action[{','.join(map(str, index))}]"
        channels.append(Channel(name, unit="?", doc=doc, range=(low, high) if bounded else None))
    return tuple(channels)


def choice_words(text: str, space: spaces.Discrete) -> str:
    """Words for each choice, `0 push cart to the left, 1 …`, as the docstring's section on actions
    lists it; empty where that does not name exactly the space's choices."""
    section = _SECTION.search(text)
    listed = _IN_A_LIST.findall(section.group(1)) if section else []
    found = listed or (_in_a_table(section.group(1)) if section else [])
    if [int(number) for number, _ in found] != list(range(space.start, space.start + space.n)):
        return ""
    joined = ", ".join(f"{index} {_plain(what)}" for index, (_, what) in enumerate(found))
    return joined if len(joined) <= _MOST_WORDS else ""


def _in_a_table(text: str) -> list[tuple[str, str]]:
    """Number and words of each row of a Markdown table whose column of words is called Action."""
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
