"""Expected improvement of rewards that were not trained, from those that were.

A Gaussian process over rewards (kriging; Rasmussen & Williams 2006). Two rewards are as near as
their credit for the same stored steps, so a draft is expected to do what its neighbours did. Its
mean rises a little with the agreement with the fitness's credit, which is what counts where nothing
near was trained; how much it does so is learned from the run's trainings. The draft with the
highest expected improvement over the best so far is the one to train (Jones et al. 1998). Both are
unknown: improvement is that of the one's mean over the other's, so a copy of the best improves
nothing.

The constants are set, not fitted: on ten tables of trainings, integrating over them ranked rewards
no better (benchmarks/LOG.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eureka_agent.records import Credit

Floats = NDArray[np.float64]

SHARED = 0.35
"""Variance of what rewards of equal credit have in common, in units of a single training's."""
OWN = 0.15
"""Variance of what only a reward of nearly the same credit has in common with it."""
NOISE = 0.5
"""Variance between seeds."""
REACH, OWN_REACH = 0.25, 0.01
"""By how much a correlation is below 1 where what rewards have in common is down to 1/e."""
SLOPE, SLOPE_VARIANCE = 0.2, 0.03
"""Rise with the agreement, per deviation of it, and its variance."""
LEVEL_VARIANCE = 4.0
FARTHEST = 2.0
"""Deviations from the median, of a normal distribution with the same median deviation, to which
fitness counts: a training that went wrong would make all others look alike."""
_EQUAL = 1e-9
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Known:
    """A trained reward."""

    credit: Credit
    fitness: float
    """Mean over its trainings."""
    trainings: int


def expected_improvements(known: Sequence[Known], drafts: Sequence[Credit]) -> list[float]:
    """Expected lead of each draft over the known reward of which most is expected, counting what is
    not better as 0, in units of the fitness; where all known rewards have the same fitness, in no
    unit. Needs a known reward; all credits are of the same steps."""
    credits = [*(each.credit for each in known), *drafts]
    agreement = _standardised(np.array([each.alignment for each in credits]))
    fitness = _without_outliers(np.array([each.fitness for each in known]))
    values = _standardised(fitness)
    here, there = slice(None, len(known)), slice(len(known), None)
    prior = SLOPE * agreement
    distance = _distances(credits)
    covariance = (
        LEVEL_VARIANCE
        + SLOPE_VARIANCE * np.outer(agreement, agreement)
        + SHARED * np.exp(-distance / REACH)
        + OWN * np.exp(-distance / OWN_REACH)
    )
    noise = np.diag([NOISE / each.trainings for each in known])
    weights = np.linalg.solve(covariance[here, here] + noise, covariance[here])
    mean = prior + weights.T @ (values - prior[here])
    left = covariance - covariance[:, here] @ weights
    best = int(mean[here].argmax())
    lead = mean[there] - mean[best]
    variance = np.diag(left)[there] + left[best, best] - 2.0 * left[there, best]
    deviation = np.sqrt(variance.clip(min=_EQUAL))
    unit = float(fitness.std()) or 1.0
    return [unit * _mean_above_0(*each) for each in zip(lead, deviation, strict=True)]


def _mean_above_0(mean: float, deviation: float) -> float:
    """Mean of a normal number where it is above 0, and of 0 elsewhere."""
    scaled = mean / deviation
    return float(mean * _NORMAL.cdf(scaled) + deviation * _NORMAL.pdf(scaled))


def _distances(credits: Sequence[Credit]) -> Floats:
    """1 less the mean rank correlation of each pair of credits, as half of a squared distance.
    Shape: (credits, credits)."""
    ranks = np.array([each.ranks for each in credits]).reshape(len(credits), 3, -1)
    centred = ranks - ranks.mean(axis=2, keepdims=True)
    lengths = np.linalg.norm(centred, axis=2, keepdims=True)
    unit = np.where(lengths > _EQUAL, centred / lengths.clip(min=_EQUAL), 0.0)
    flat = unit.reshape(len(credits), -1) / np.sqrt(3)
    squares = (flat**2).sum(axis=1)
    distances: Floats = (squares[:, None] + squares[None]) / 2 - flat @ flat.T
    return distances.clip(min=0.0)


def _without_outliers(fitness: Floats) -> Floats:
    """The fitness with what is far from its median drawn near (winsorised); as it is where half of
    it is equal."""
    middle = float(np.median(fitness))
    deviation = float(np.median(np.abs(fitness - middle))) / _NORMAL.inv_cdf(0.75)
    if deviation <= _EQUAL:
        return fitness
    reach = FARTHEST * deviation
    near: Floats = fitness.clip(middle - reach, middle + reach)
    return near


def _standardised(values: Floats) -> Floats:
    """Values of mean 0 and deviation 1; 0 where all are equal."""
    deviation = values.std()
    return (values - values.mean()) / (deviation if deviation > _EQUAL else 1.0)
