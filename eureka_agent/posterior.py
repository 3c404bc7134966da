"""Beliefs about rewards from their trainings: a hierarchical normal model of the scores.

A reward's score from one seed is normal around its mean, and the means are normal around a common
one (the one-way random-effects model). Both deviations and the common mean are unknown and
integrated out: over a grid for the deviations, in closed form for the rest (Gelman et al., Bayesian
Data Analysis, chapter 5). So the noise between seeds is pooled over all rewards, and where hardly
any reward was trained twice the answer is as unsure as it should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SHARES = np.linspace(0.02, 0.98, 25)
"""Grid of the rewards' share of the variance of a single score. Its prior is Beta(2, 2): of the
tables of trainings in benchmarks/results, the share lies between 0.3 and 0.75."""
_SCALES = np.exp(np.linspace(np.log(0.3), np.log(4.0), 25))
"""Grid of the deviation of a single score, as a multiple of the scores' own."""
_DRAWS = 4096
_SEED = 0


@dataclass(frozen=True)
class Posterior:
    """Beliefs about the means of rewards, in the order of the scores."""

    means: Floats
    """Expected score of one more training of each reward."""
    noise: Floats
    """Draws of the deviation of a reward's scores between seeds. Shape: (draws,)."""
    spread: Floats
    """Draws of the deviation of the rewards' means. Shape: (draws,)."""
    level: Floats
    """Draws of the mean of the rewards' means. Shape: (draws,)."""
    draws: Floats
    """Joint draws of the rewards' means. Shape: (draws, rewards)."""

    def probability_best(self, among: Sequence[int]) -> Floats:
        """Probability for each of these rewards that its mean is the highest of theirs."""
        draws = self.draws[:, list(among)]
        wins = draws == draws.max(axis=1, keepdims=True)
        shares: Floats = (wins / wins.sum(axis=1, keepdims=True)).mean(axis=0)
        return shares

    def gain(self, place: int, more: int) -> float:
        """Rise of the winner's mean over that of this reward, as likely as not, if so many more
        rewards, as good as those so far, are trained once each. The best of them wins where more is
        expected of it than of this one.

        The median, since a normal tail is too long for a fitness that has a ceiling: on twelve
        tables of trainings the mean said 0.45 deviations and the median 0.10, and 0.15 came of it.
        """
        random = np.random.default_rng(_SEED)
        # the highest of `more` scores, and the mean that is expected behind it
        shares = random.random(len(self.draws)) ** (1.0 / more)
        highest = np.array([NormalDist().inv_cdf(each) for each in shares])
        deviation = np.hypot(self.spread, self.noise)
        share = (self.spread / np.where(deviation > 0.0, deviation, 1.0)) ** 2
        expected = self.level + share * deviation * highest
        wins = expected > self.means[place]
        return max(0.0, float(np.median((expected - self.draws[:, place]) * wins)))


def counted_on(scores: Sequence[Sequence[float]]) -> Floats:
    """Mean score of each reward that can be counted on: what is expected of it less its deviation.
    It is exceeded with a probability of about 84 %. Shape: (rewards,). Raises as `posterior`."""
    expected, deviation = _believed(scores).moments()
    return expected - deviation


def posterior(scores: Sequence[Sequence[float]]) -> Posterior:
    """The posterior of rewards, each with at least one score. Equal scores give equal draws: random
    numbers have a fixed seed. Raises ValueError without a reward, or for one without a score."""
    found = _believed(scores)
    means = found.means
    if not len(found.weights):
        draws = np.tile(means, (_DRAWS, 1))
        return Posterior(means, np.zeros(_DRAWS), np.zeros(_DRAWS), draws[:, 0], draws)
    random = np.random.default_rng(_SEED)
    cells = random.choice(len(found.weights), size=_DRAWS, p=found.weights)
    level = found.common[cells] + random.standard_normal(_DRAWS) / np.sqrt(found.total[cells])
    own = found.own[cells][:, found.group]
    centres = level[:, None] + own * (means - level[:, None])
    spreads = np.sqrt(found.between[cells, None] * (1.0 - own))
    draws = centres + spreads * random.standard_normal((_DRAWS, len(means)))
    return Posterior(
        means=found.moments()[0],
        noise=np.sqrt(found.noise[cells]),
        spread=np.sqrt(found.between[cells]),
        level=level,
        draws=draws,
    )


@dataclass(frozen=True)
class _Believed:
    """Weights of the grid's cells, and what follows in each. Without a cell where all scores are
    equal."""

    means: Floats
    """Mean score of each reward. Shape: (rewards,)."""
    group: NDArray[np.int64]
    """Index of each reward's number of scores among the different ones. Shape: (rewards,)."""
    weights: Floats
    """Shape, as that of all below: (cells,)."""
    between: Floats
    noise: Floats
    common: Floats
    total: Floats
    """Precision of the common mean."""
    own: Floats
    """Weight of a reward's own scores by their number. Shape: (cells, different numbers)."""
    middle: float
    """Mean of `means`, from which they are measured so that no digits are lost."""

    def moments(self) -> tuple[Floats, Floats]:
        """Posterior mean and deviation of each reward's mean. Shape of both: (rewards,)."""
        if not len(self.weights):
            return self.means, np.zeros(len(self.means))
        # in a cell, and for one number of scores, the mean is a line in a reward's own
        slope, offsets = self.own, self.means - self.middle
        level = (self.common - self.middle)[:, None] * (1.0 - slope)
        between, total = self.between[:, None], self.total[:, None]
        within = between * (1.0 - slope) + (1.0 - slope) ** 2 / total
        over_cells = (level, slope, within + level**2, 2.0 * level * slope, slope**2)
        base, rise, constant, linear, square = (
            (self.weights @ each)[self.group] for each in over_cells
        )
        expected = base + rise * offsets
        variance = constant + linear * offsets + square * offsets**2 - expected**2
        return self.middle + expected, np.sqrt(np.maximum(variance, 0.0))


def _believed(scores: Sequence[Sequence[float]]) -> _Believed:
    lengths = np.array([len(values) for values in scores])
    if not len(lengths) or lengths.min() < 1:
        raise ValueError("every reward needs a score")
    single = np.concatenate([np.asarray(values, dtype=float) for values in scores])
    means = np.add.reduceat(single, np.cumsum(lengths) - lengths) / lengths
    within = float(((single - np.repeat(means, lengths)) ** 2).sum())
    scale = float(single.std())
    different, group = np.unique(lengths, return_inverse=True)
    if scale <= 1e-9 * max(1.0, float(np.abs(means).max())):
        none = np.zeros(0)
        return _Believed(means, group, none, none, none, none, none, none, 0.0)
    share, deviation = (grid.ravel() for grid in np.meshgrid(_SHARES, scale * _SCALES))
    between, noise = share * deviation**2, (1.0 - share) * deviation**2
    # rewards with as many scores have one precision: number, sum and sum of squares of their means
    # are enough, so that thousands of rewards cost no more than a few
    middle = float(means.mean())
    number = np.bincount(group).astype(float)
    sums = np.bincount(group, means - middle)
    squares = np.bincount(group, (means - middle) ** 2)
    precision = 1.0 / (between[:, None] + noise[:, None] / different)  # (cells, different numbers)
    total = precision @ number
    common = (precision @ sums) / total
    density = (
        np.log(share * (1.0 - share))
        - 0.5 * (lengths.sum() - len(lengths)) * np.log(noise)
        - 0.5 * within / noise
        + 0.5 * np.log(precision) @ number
        - 0.5 * (precision @ squares - common**2 * total)
        - 0.5 * np.log(total)
    )
    weights = np.exp(density - density.max())
    own = between[:, None] * precision
    weights /= weights.sum()
    return _Believed(means, group, weights, between, noise, common + middle, total, own, middle)
