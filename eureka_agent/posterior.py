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


def posterior(scores: Sequence[Sequence[float]]) -> Posterior:
    """The posterior of rewards, each with at least one score. Equal scores give equal draws: random
    numbers have a fixed seed. Raises ValueError without a reward, or for one without a score."""
    counts = np.array([len(values) for values in scores], dtype=float)
    if not len(counts) or counts.min() < 1:
        raise ValueError("every reward needs a score")
    means = np.array([np.mean(values) for values in scores])
    within = float(sum(((np.asarray(values) - np.mean(values)) ** 2).sum() for values in scores))
    scale = float(np.std(np.concatenate([np.asarray(values) for values in scores])))
    if scale <= 1e-9 * max(1.0, float(np.abs(means).max())):
        draws = np.tile(means, (_DRAWS, 1))
        return Posterior(means, np.zeros(_DRAWS), np.zeros(_DRAWS), draws[:, 0], draws)
    share, deviation = (grid.ravel() for grid in np.meshgrid(_SHARES, scale * _SCALES))
    between, noise = share * deviation**2, (1.0 - share) * deviation**2
    # shapes: (grid, rewards)
    precision = 1.0 / (between[:, None] + noise[:, None] / counts)
    total = precision.sum(axis=1)
    common = (precision * means).sum(axis=1) / total
    density = (
        np.log(share * (1.0 - share))
        - 0.5 * (counts.sum() - len(counts)) * np.log(noise)
        - 0.5 * within / noise
        + 0.5 * np.log(precision).sum(axis=1)
        - 0.5 * (precision * (means - common[:, None]) ** 2).sum(axis=1)
        - 0.5 * np.log(total)
    )
    weights = np.exp(density - density.max())
    weights /= weights.sum()
    own = between[:, None] * precision  # weight of a reward's own scores
    expected = common[:, None] + own * (means - common[:, None])
    random = np.random.default_rng(_SEED)
    cells = random.choice(len(weights), size=_DRAWS, p=weights)
    level = common[cells] + random.standard_normal(_DRAWS) / np.sqrt(total[cells])
    centres = level[:, None] + own[cells] * (means - level[:, None])
    spreads = np.sqrt(between[cells, None] * (1.0 - own[cells]))
    draws = centres + spreads * random.standard_normal((_DRAWS, len(counts)))
    return Posterior(
        means=weights @ expected,
        noise=np.sqrt(noise[cells]),
        spread=np.sqrt(between[cells]),
        level=level,
        draws=draws,
    )
