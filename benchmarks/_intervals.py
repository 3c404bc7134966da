"""Means with intervals over few seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# 97.5 % quantiles of Student's t distribution by degrees of freedom
_T_QUANTILE = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean of two to ten values and half width of its 95 % confidence interval (Student's t)."""
    half = _T_QUANTILE[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), half
