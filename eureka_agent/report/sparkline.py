"""A curve in one line of text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from eureka_agent.journal.under_way import finite_mean

BLOCKS = "▁▂▃▄▅▆▇█"


def resample(values: Sequence[float | None], width: int) -> list[float | None]:
    """Means of at most `width` equal parts; None for a part without a finite value."""
    if width < 1:
        return []
    if len(values) <= width:
        return [finite_mean([value]) for value in values]
    bounds = [index * len(values) // width for index in range(width + 1)]
    return [finite_mean(values[start:end]) for start, end in itertools.pairwise(bounds)]


Scale = tuple[float, float]
"""Values of the lowest and the highest block."""


def common_scale(curves: Iterable[Sequence[float | None]], width: int) -> Scale | None:
    """Common scale of curves of `width` characters; None without a known value."""
    known = [point for values in curves for point in resample(values, width) if point is not None]
    return (min(known), max(known)) if known else None


def sparkline(values: Sequence[float | None], width: int, *, scale: Scale | None = None) -> str:
    """Curve of at most `width` blocks, with gaps for values that are None or not finite. `scale`:
    covers the curve; default: its own. A constant curve has middle height."""
    points = resample(values, width)
    scale = scale or common_scale([points], width)
    if scale is None:
        return " " * len(points)
    lowest, highest = scale
    span = highest - lowest
    if span <= 0 or not math.isfinite(span):
        return "".join(" " if point is None else BLOCKS[3] for point in points)
    top = len(BLOCKS) - 1
    return "".join(
        " " if point is None else BLOCKS[round((point - lowest) / span * top)] for point in points
    )
