"""Comparison of two rewards beyond the noise of a few seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent.records import Score

FEWEST_SEEDS = 3
"""Seeds from which an interval is useful: with two, Student's t is 12.7."""


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
    from scipy.special import stdtrit  # most commands do without

    margin = float(stdtrit(degrees_of_freedom, 0.975)) * math.sqrt(variance)
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
