"""Comparison of two rewards beyond the noise of a few seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent.records import Score

FEWEST_SEEDS = 3
"""Seeds from which an interval is useful: with two, Student's t is 12.7."""
INTERVALS = 100
"""Intervals of Simpson's rule, an even number; more do not change the eighth digit."""


def student_t_975(degrees_of_freedom: float) -> float:
    """0.975 quantile of Student's t; fewer than 1 degree of freedom count as 1.

    With t = sqrt(n) tan(a) the density becomes cos(a)^(n - 1), whose whole integral is known.
    Newton's method finds the angle that holds 95 % of it. The integral is concave, so the angle
    converges from below.
    """
    freedom = max(1.0, degrees_of_freedom)
    ratio = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2))
    wanted = 0.95 * math.sqrt(math.pi) / 2 * ratio
    angle, power = 0.0, freedom - 1
    for _ in range(20):
        angle += (wanted - _integral_of_cosine_power(power, angle)) / math.cos(angle) ** power
    return math.sqrt(freedom) * math.tan(angle)


def _integral_of_cosine_power(power: float, angle: float) -> float:
    """Integral of cos(a)^power from 0 to `angle`, by Simpson's rule."""
    values = [math.cos(angle * place / INTERVALS) ** power for place in range(INTERVALS + 1)]
    total = values[0] + values[-1] + 4 * sum(values[1::2]) + 2 * sum(values[2:-1:2])
    return angle / (3 * INTERVALS) * total


@dataclass(frozen=True)
class Comparison:
    """Difference of two means with Welch's 95 % interval (B. L. Welch, 1947)."""

    difference: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        return self.low > 0

    @property
    def worse(self) -> bool:
        return self.high < 0

    @property
    def relation(self) -> str:
        """`better than`, `worse than` or `not told apart from`."""
        if self.better:
            return "better than"
        return "worse than" if self.worse else "not told apart from"

    @property
    def width(self) -> float:
        return self.high - self.low


def compare(ours: Sequence[float], theirs: Sequence[float]) -> Comparison | None:
    """`ours` minus `theirs`, one value per seed; None with fewer than two seeds of either."""
    if len(ours) < 2 or len(theirs) < 2:
        return None
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    parts = [(statistics.variance(values) / len(values), len(values)) for values in (ours, theirs)]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return Comparison(difference, difference, difference)
    degrees_of_freedom = variance**2 / sum(part**2 / (size - 1) for part, size in parts)
    margin = student_t_975(degrees_of_freedom) * math.sqrt(variance)
    return Comparison(difference, difference - margin, difference + margin)


def compare_scores(ours: Score, theirs: Score) -> Comparison | None:
    """Comparison over seeds; None with fewer than `FEWEST_SEEDS` known ones of either."""
    values = known_fitness(ours), known_fitness(theirs)
    return None if min(map(len, values)) < FEWEST_SEEDS else compare(*values)


def told_apart(ours: Score, theirs: Score) -> bool:
    """True where one is better than the other beyond the noise of their seeds."""
    comparison = compare_scores(ours, theirs)
    return comparison is not None and (comparison.better or comparison.worse)


def known_fitness(score: Score) -> list[float]:
    """Fitness of the seeds whose trainings did not fail."""
    return [value for value in score.fitness if value is not None]
