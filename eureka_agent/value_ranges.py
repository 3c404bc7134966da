"""Ranges of values in words, with the digits that their width needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

ValueRange = tuple[float, float, float]
"""Lowest value, highest value, smallest magnitude: an angle around ±π is never 0."""

_ALIKE = 0.25
"""Part of their width by which two ranges sampled from one distribution may differ."""
_NO_WIDTH = 1e-6
_LARGE = 1e7
"""Magnitude from which three digits are shown."""
_GAP = 0.5
"""Ratio of the smallest to the largest magnitude above which there is a gap about 0."""


def short_number(value: float) -> str:
    """Three digits; all digits of whole numbers up to ten millions."""
    return _plain(f"{value:.0f}" if 1e3 <= abs(value) < _LARGE else f"{value:.3g}")


def range_text(low: float, high: float, smallest: float = 0.0) -> str:
    """`-0.1 to 0.1`, `1.249 to 1.251`, `±(2.9 to 3.1)`; one number where the ends are equal."""
    largest = max(abs(low), abs(high))
    if low < 0.0 < high and smallest > _GAP * largest:
        return f"±({range_text(smallest, largest)})"
    width = high - low
    if width <= _NO_WIDTH * max(1.0, largest):
        return short_number(low) if largest > _NO_WIDTH else "0"
    decimals = _decimals(width)
    return f"{_fixed(low, decimals)} to {_fixed(high, decimals)}"


def mean_text(mean: float, deviation: float | None) -> str:
    """`12.3 ± 0.4`: two digits of the standard deviation, the mean with the same decimals."""
    if deviation is None:
        return short_number(mean)
    if deviation <= _NO_WIDTH * abs(mean):
        return f"{short_number(mean)} ± 0"
    decimals = _decimals(deviation)
    return f"{_fixed(mean, decimals)} ± {_fixed(deviation, decimals)}"


def column_ranges_text(ranges: Sequence[ValueRange]) -> str:
    """Ranges of a variable's columns, similar ones together: `-0.1 to 0.1`, `[0:2] 0; [2] 0.57`."""
    groups: list[tuple[ValueRange, list[int]]] = []
    for column, found in enumerate(ranges):
        for index, (known, columns) in enumerate(groups):
            if _alike(known, found):
                both = (min(known[0], found[0]), max(known[1], found[1]), min(known[2], found[2]))
                groups[index] = (both, [*columns, column])
                break
        else:
            groups.append((found, [column]))
    if len(groups) == 1:
        return range_text(*groups[0][0])
    return "; ".join(
        f"[{_columns_text(columns)}] {range_text(*found)}" for found, columns in groups
    )


def _decimals(width: float) -> int:
    """Decimals that show two digits of the width."""
    return max(0, 1 - math.floor(math.log10(width))) if math.isfinite(width) else 0


def _fixed(value: float, decimals: int) -> str:
    return _plain(f"{value:.{decimals}f}" if abs(value) < _LARGE else f"{value:.3g}")


def _alike(one: ValueRange, other: ValueRange) -> bool:
    tolerance = _ALIKE * max(one[1] - one[0], other[1] - other[0])
    return all(abs(first - second) <= tolerance for first, second in zip(one, other, strict=True))


def _columns_text(columns: Sequence[int]) -> str:
    """Columns as an index: `0`, `0:3`, `0, 2, 4`."""
    first, last = columns[0], columns[-1]
    if len(columns) > 1 and last - first == len(columns) - 1:
        return f"{first}:{last + 1}"
    return ", ".join(map(str, columns))


def _plain(number: str) -> str:
    """Number without trailing zeros and without a minus before zero."""
    if "." in number and "e" not in number:
        number = number.rstrip("0").rstrip(".")
    return "0" if number == "-0" else number
