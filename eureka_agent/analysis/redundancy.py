"""Columns of an episode that say the same as others: they rise and fall with them, with their size,
or with their sine or cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Columns = npt.NDArray[np.float64]
"""Shape: (steps, columns)."""

SAME = 0.99
"""Correlation over all episodes from which two columns say the same: one is computed from the
other, but for what is clipped."""
ROUNDING = 1e-3
"""Part of their size by which the lengths of two vectors may differ that are one and the same."""
LEAST_STEPS = 5
"""Steps below which a correlation says nothing."""


class KnownColumns:
    """Columns by name, with which others are compared."""

    def __init__(self, steps: int) -> None:
        self._names: list[str] = []
        self._columns = np.zeros((steps, 0))

    def add(self, names: Sequence[str], columns: Columns, *, angles: bool = False) -> None:
        """Take in columns and their sizes; of angles their cosines and sines too."""
        self._take(names, columns)
        self._take([f"|{name}|" for name in names], np.abs(columns))
        if angles:
            self._take([f"cos {name}" for name in names], np.cos(columns))
            self._take([f"sin {name}" for name in names], np.sin(columns))

    def _take(self, names: Sequence[str], columns: Columns) -> None:
        self._names += names
        self._columns = np.hstack((self._columns, _standard(columns)))

    def twins(self, columns: Columns) -> list[str]:
        """For each column the name of the first known one that says the same; empty where none
        does."""
        if len(columns) < LEAST_STEPS or not self._names:
            return [""] * columns.shape[1]
        found = np.abs(_standard(columns).T @ self._columns) > SAME
        return [self._names[row.argmax()] if row.any() else "" for row in found]


def is_turned(first: Columns, second: Columns) -> bool:
    """True where two vectors are one in two frames: of the same length at every step."""
    if first.shape != second.shape or first.shape[1] < 2 or len(first) < LEAST_STEPS:
        return False
    length, other = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    return bool(np.allclose(length, other, rtol=ROUNDING, atol=ROUNDING * float(length.max())))


def is_quaternion(columns: Columns) -> bool:
    """True for four columns whose length is 1 at every step."""
    return columns.shape[1] == 4 and bool(
        np.allclose(np.linalg.norm(columns, axis=1), 1.0, atol=ROUNDING)
    )


def _standard(columns: Columns) -> Columns:
    """Each column about its mean with a norm of 1, so that products are Pearson's correlations; 0
    where it is constant."""
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    return np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
