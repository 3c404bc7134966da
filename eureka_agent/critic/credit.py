"""Likeness of rewards by the credit that they give to recorded steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eureka_agent.records import Credit

_NO_LENGTH = 1e-9


def credit_distances(credits: Sequence[Credit]) -> NDArray[np.float64]:
    """1 less the mean rank correlation of each pair of credits. Shape: (credits, credits)."""
    ranks = np.array([each.ranks for each in credits]).reshape(len(credits), 3, -1)
    centred = ranks - ranks.mean(axis=2, keepdims=True)
    lengths = np.linalg.norm(centred, axis=2, keepdims=True)
    unit = np.where(lengths > _NO_LENGTH, centred / lengths.clip(min=_NO_LENGTH), 0.0)
    flat = unit.reshape(len(credits), -1) / np.sqrt(3)
    squares = (flat**2).sum(axis=1)
    distances: NDArray[np.float64] = (squares[:, None] + squares[None]) / 2 - flat @ flat.T
    return distances.clip(min=0.0)
