"""Redundant columns of an episode: correlated with another, its magnitude, sine or cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Columns = npt.NDArray[np.float64]
"""Shape: (steps, columns)."""

SAME = 0.99
"""Correlation over all episodes from which a column is redundant; clipping lowers it slightly."""
ROUNDING = 1e-3
"""Relative difference allowed between the lengths of one vector in two frames."""
LEAST_STEPS = 5
"""Fewest steps for a correlation."""


class KnownColumns:
    """Named columns that others are compared with."""

    def __init__(self, steps: int) -> None:
        self._names: list[str] = []
        self._columns = np.zeros((steps, 0))

    def add(self, names: Sequence[str], columns: Columns, *, angles: bool = False) -> None:
        """Add columns and their magnitudes; for angles their cosines and sines too."""
        self._take(names, columns)
        self._take([f"|{name}|" for name in names], np.abs(columns))
        if angles:
            self._take([f"cos {name}" for name in names], np.cos(columns))
            self._take([f"sin {name}" for name in names], np.sin(columns))

    def _take(self, names: Sequence[str], columns: Columns) -> None:
        self._names += names
        self._columns = np.hstack((self._columns, _standard(columns)))

    def twins(self, columns: Columns) -> list[str]:
        """Names of the first known columns that make each column redundant; empty if none."""
        if len(columns) < LEAST_STEPS or not self._names:
            return [""] * columns.shape[1]
        found = np.abs(_standard(columns).T @ self._columns) > SAME
        return [self._names[row.argmax()] if row.any() else "" for row in found]


def is_turned(first: Columns, second: Columns) -> bool:
    """True where two vectors have the same length at every step: one vector in two frames."""
    if first.shape != second.shape or first.shape[1] < 2 or len(first) < LEAST_STEPS:
        return False
    length, other = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    return bool(np.allclose(length, other, rtol=ROUNDING, atol=ROUNDING * float(length.max())))


def is_quaternion(columns: Columns) -> bool:
    """True for four columns of length 1 at every step."""
    return columns.shape[1] == 4 and bool(
        np.allclose(np.linalg.norm(columns, axis=1), 1.0, atol=ROUNDING)
    )


def _standard(columns: Columns) -> Columns:
    """Centre each column and scale it to norm 1: products are then Pearson's correlations."""
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    return np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
