"""Columns of an episode that say the same as others: they rise and fall with them, or with their size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Columns = npt.NDArray[np.float64]
"""Shape: (steps, columns)."""

SAME = 0.99
"""Correlation over an episode from which two columns say the same."""
LEAST_STEPS = 5
"""Steps below which a correlation says nothing."""


class KnownColumns:
    """Columns by name, with which others are compared."""

    def __init__(self, steps: int) -> None:
        self._names: list[str] = []
        self._columns = np.zeros((steps, 0))

    def add(self, names: list[str], columns: Columns) -> None:
        """Take in columns, and their sizes."""
        self._names += [*names, *(f"|{name}|" for name in names)]
        self._columns = np.hstack((self._columns, _standard(columns), _standard(np.abs(columns))))

    def twins(self, columns: Columns) -> list[str]:
        """For each column the name of the first known one that says the same; empty where none does."""
        if len(columns) < LEAST_STEPS or not self._names:
            return [""] * columns.shape[1]
        same = np.abs(_standard(columns).T @ self._columns) > SAME
        return [self._names[row.argmax()] if row.any() else "" for row in same]


def _standard(columns: Columns) -> Columns:
    """Each column about its mean with a norm of 1, so that products are Pearson's correlations; 0 where it is constant."""
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    return np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
