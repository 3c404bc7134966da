"""A curve in one line of text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.-=+*#@"


def resample(values: Sequence[float | None], width: int) -> list[float | None]:
    """Means of at most `width` equal parts; None for a part without a finite value."""
    if width < 1:
        return []
    if len(values) <= width:
        return [_finite_mean([value]) for value in values]
    bounds = [index * len(values) // width for index in range(width + 1)]
    return [_finite_mean(values[start:end]) for start, end in itertools.pairwise(bounds)]


Scale = tuple[float, float]
"""Values of the lowest and the highest block."""


def common_scale(curves: Iterable[Sequence[float | None]], width: int) -> Scale | None:
    """Common scale of curves of `width` characters; None without a known value."""
    known = [point for values in curves for point in resample(values, width) if point is not None]
    return (min(known), max(known)) if known else None


def sparkline(
    values: Sequence[float | None],
    width: int,
    *,
    scale: Scale | None = None,
    ascii_only: bool = False,
) -> str:
    """Curve of at most `width` blocks, with gaps for values that are None or not finite.

    `scale`: covers the curve; default: its own. A constant curve has middle height.
    """
    points = resample(values, width)
    scale = scale or common_scale([points], width)
    if scale is None:
        return " " * len(points)
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    lowest, highest = scale
    span = highest - lowest
    if span <= 0 or not math.isfinite(span):
        return "".join(" " if point is None else blocks[3] for point in points)
    top = len(blocks) - 1
    return "".join(
        " " if point is None else blocks[round((point - lowest) / span * top)] for point in points
    )


def progress_bar(share: float, width: int, *, ascii_only: bool = False) -> tuple[str, str]:
    """Done and open part of a bar of `width` characters."""
    done = round(min(max(share, 0.0), 1.0) * width)
    full, empty = ("#", "-") if ascii_only else ("━", "─")
    return full * done, empty * (width - done)


class History:
    """Growing curve in bounded memory: neighbours are averaged when it is full."""

    def __init__(self, capacity: int = 128) -> None:
        self._capacity = capacity
        self._stride = 1
        self._pending: list[float | None] = []
        self.values: list[float | None] = []

    def append(self, value: float | None) -> None:
        """Add a value, in constant time on average."""
        self._pending.append(value)
        if len(self._pending) < self._stride:
            return
        self.values.append(_finite_mean(self._pending))
        self._pending.clear()
        if len(self.values) >= self._capacity:
            self.values = [
                _finite_mean(self.values[index : index + 2])
                for index in range(0, len(self.values), 2)
            ]
            self._stride *= 2


def _finite_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None
