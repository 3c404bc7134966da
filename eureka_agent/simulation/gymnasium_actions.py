"""Gymnasium's action spaces: sizes, choices, what the numbers of an action are, and actions of a
space from a policy's numbers, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.records import MOST_CHOICES
from eureka_agent.task import Channel


def check_actions(label: str, space: spaces.Space) -> None:
    """Raises EnvironmentLoadError for an action space that no policy supports."""
    if not isinstance(
        space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    ):
        fault = f"the action space {space}, expected Box, Discrete, MultiDiscrete or MultiBinary"
        wanted = "its actions wrapped"
    elif not num_actions(space):
        fault = f"the action space {space}, which has no numbers"
        wanted = "at least one number in its action space"
    elif (count := sum(action_choices(space))) > MOST_CHOICES:
        fault, wanted = f"{count:,} choices, expected at most {MOST_CHOICES:,}", "fewer of them"
    else:
        return
    hint = "write a folder whose env.py has `def make()`, which returns the environment with "
    raise EnvironmentLoadError(f"{label} has {fault}", hint + wanted)


def action_choices(space: spaces.Space) -> tuple[int, ...]:
    """Number of choices for each entry of an action; empty for a Box."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(space.nvec.reshape(-1).tolist())
    return (2,) * spaces.flatdim(space) if isinstance(space, spaces.MultiBinary) else ()


def num_actions(space: spaces.Space) -> int:
    return len(action_choices(space)) or spaces.flatdim(space)


def trial_actions(space: spaces.Space) -> Callable[[], Any]:
    """Make a function that draws an action, of a Box, which may lack bounds, as a policy's."""
    if not isinstance(space, spaces.Box):
        return space.sample
    conversion, size = Conversion(space), (1, num_actions(space))
    return lambda: conversion.to_space(space.np_random.uniform(-1.0, 1.0, size))[0]


def action_channels(space: spaces.Space) -> tuple[Channel, ...]:
    """Names and ranges of a policy's action."""
    if isinstance(space, spaces.Discrete):
        return (Channel("choice"),)
    shape = space.shape or ()
    places = [",".join(map(str, index)) for index in numpy.ndindex(*shape)]
    if not isinstance(space, spaces.Box):
        counts = zip(places, action_choices(space), strict=True)
        named = ((f"choice[{place}]", count) for place, count in counts)
        return tuple(Channel(name, doc=f"{name} 0 to {count - 1}") for name, count in named)
    columns = (*box_ends(space), space.low.reshape(-1), space.high.reshape(-1))
    channels = []
    for place, *numbers in zip(places, *(each.tolist() for each in columns), strict=True):
        low, high, *bounds = numbers
        docs = [] if [low, high] == bounds else ["of {:g} to {:g}".format(*bounds)]
        if space.dtype.kind != "f":
            docs.append("rounded to a whole number")
        doc = ", ".join(docs) if low < high else f"fixed at {low:g}"
        limits = (low, high) if low < high else None
        channels.append(Channel(f"action[{place}]", (), "?", doc=doc, range=limits))
    return tuple(channels)


# ── copied into an exported gymnasium_wrapper.py ──────────────────────────────────────────────────

MOST_FLOAT, MOST_INTEGER = 1e18, 2.0**62
"""A bound from here on means that there is none, as does the last number of 32 bits and more."""


class Conversion:
    """Conversion of actions for one space: [-1, 1] for a Box, else indices of choices."""

    def __init__(self, space: gymnasium.Space) -> None:
        self.space = space
        self.start = numpy.asarray(getattr(space, "start", 0)).reshape(-1)
        if isinstance(space, gymnasium.spaces.Box):
            self.low, self.high = space.low.reshape(-1), space.high.reshape(-1)
            first, last = box_ends(space)
            self.middle, self.scale = (first + last) / 2, (last - first) / 2

    def to_space(self, actions: numpy.ndarray) -> list[Any]:
        """Actions that the space contains, from finite ones. Shape of `actions`: (n, m)."""
        space = self.space
        if isinstance(space, gymnasium.spaces.Box):
            values = self.middle + self.scale * actions
            values = values if space.dtype.kind == "f" else numpy.rint(values)
            # a rounded sum may be one float outside
            values = values.astype(space.dtype).clip(self.low, self.high)
        else:
            values = (actions.astype(numpy.int64) + self.start).astype(space.dtype)
        if isinstance(space, gymnasium.spaces.Discrete):
            return values[:, 0].tolist()
        values = values.reshape((-1, *(space.shape or ())))
        return [values[row, ...] for row in range(len(values))]  # an array for the shape () too

    def to_policy(self, actions: Any) -> numpy.ndarray:
        """A policy's numbers, float32, (n, m), for actions of the space, (n, *space.shape)."""
        values = numpy.asarray(actions, numpy.float64).reshape(len(actions), -1)
        if isinstance(self.space, gymnasium.spaces.Box):
            moving = numpy.where(self.scale > 0, self.scale, numpy.inf)  # a fixed entry is 0
            values = ((values - self.middle) / moving).clip(-1.0, 1.0)
        else:
            values = values - self.start
        return values.astype(numpy.float32)


def box_ends(space: gymnasium.spaces.Box) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Commands of -1 and 1: the bounds; for an entry that lacks one, the two units within its
    bound that are nearest to [-1, 1]. Shape of both: (m,), float64."""
    most = MOST_FLOAT
    if space.dtype.kind == "f":
        most = min(most, float(numpy.finfo(str(space.dtype)).max))
    elif space.dtype.itemsize >= 4:
        most = min(MOST_INTEGER, float(numpy.iinfo(str(space.dtype)).max))
    low, high = (bounds.reshape(-1).astype(numpy.float64) for bounds in (space.low, space.high))
    low[(low <= -most) | ~space.bounded_below.reshape(-1)] = -numpy.inf
    high[(high >= most) | ~space.bounded_above.reshape(-1)] = numpy.inf
    bounded = numpy.isfinite(low) & numpy.isfinite(high)
    first = numpy.where(bounded, low, numpy.clip(-1.0, low, high - 2.0))
    return first, numpy.where(bounded, high, first + 2.0)
