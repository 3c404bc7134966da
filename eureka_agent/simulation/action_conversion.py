"""Actions of a Gymnasium space from a policy's numbers, and back; `eureka export` copies it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy

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
