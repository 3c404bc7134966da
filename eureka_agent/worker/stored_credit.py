"""Credit that a reward gives to stored steps, beside the fitness's, before any training.

A policy gradient follows advantages, so a reward is as good a teacher as it orders steps like the
fitness does: by their value, by the discounted return that follows them, and by that return beyond
what is usual in the state. The three are compared by rank on episodes of policies that have only
begun to learn, which is where a reward has to lead, and on those that have learned. Comparing
rewards by their returns or advantages in place of their numbers, without a training, is the idea of
EPIC (Gleave et al. 2021), DARD (Wulfe et al. 2022) and STARC (Skalse et al. 2024); what it tells of
trainings is in benchmarks/LOG.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eureka_agent.records import MOST_RANKED_STEPS, Credit

Floats = NDArray[np.float64]

DISCOUNT = 0.99
"""Discount of the returns, as that of a training by default."""
MOST_STEPS = 3000
"""Most steps that are compared with the fitness, evenly spread."""
MOST_FEATURES = 256
"""Most columns of the observations that say what is usual in a state."""
_RIDGE = 1e-2
_CLIPPED = 5.0
_EQUAL = 1e-12


class StoredCredit:
    """The credit that the fitness gives to stored steps."""

    def __init__(self, fitness: Floats, observations: Floats, lengths: Sequence[int]) -> None:
        """`fitness`: per step, shape (steps,), episode after episode of these lengths.
        `observations`: a policy's inputs, shape (steps, num_observations)."""
        self._lengths = tuple(lengths)
        self._taken = _spread(len(fitness), MOST_STEPS)
        self._usual = _Usual(observations[self._taken])
        self._fitness = self._parts(fitness)

    def of(self, totals: Floats) -> Credit | None:
        """The credit of a reward with these totals, shape (steps,), by the ranks of at most
        `MOST_RANKED_STEPS` steps; None where one is not finite. A correlation is 0 where the
        reward, or the fitness, is the same in all steps."""
        if not np.isfinite(totals).all():
            return None
        parts = self._parts(totals)
        pairs = zip(parts, self._fitness, strict=True)
        step, to_go, advantage = (_rank_correlation(ours, theirs) for ours, theirs in pairs)
        shown = _spread(len(self._taken), MOST_RANKED_STEPS)
        ranks = np.concatenate([_ranks(part[shown]) for part in parts])
        return Credit(step=step, to_go=to_go, advantage=advantage, ranks=tuple(ranks.tolist()))

    def _parts(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Values, discounted returns to go, and these beyond the usual, of the taken steps."""
        to_go = discounted(values, self._lengths)[self._taken]
        return values[self._taken], to_go, self._usual.residual(to_go)


class _Usual:
    """A least-squares fit of returns to observations, their squares and a constant."""

    def __init__(self, observations: Floats) -> None:
        columns = observations[:, observations.std(axis=0) > _EQUAL]
        columns = columns[:, _spread(columns.shape[1], MOST_FEATURES)]
        scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        scaled = scaled.clip(-_CLIPPED, _CLIPPED)
        self._features = np.column_stack([np.ones(len(scaled)), scaled, scaled**2])
        size = self._features.shape[1]
        ridge = _RIDGE * len(scaled) * np.eye(size)
        self._inverse = np.linalg.inv(self._features.T @ self._features + ridge)

    def residual(self, returns: Floats) -> Floats:
        """Residual of returns, which are scaled to deviation 1 first."""
        deviation = returns.std()
        scaled = (returns - returns.mean()) / (deviation if deviation > _EQUAL else 1.0)
        weights = self._inverse @ (self._features.T @ scaled)
        residual: Floats = scaled - self._features @ weights
        return residual


def discounted(values: Floats, lengths: Sequence[int]) -> Floats:
    """Discounted sum of each step's value and those after it in its episode."""
    sums = values.astype(np.float64)
    for episode in np.split(sums, np.cumsum(lengths)[:-1]):
        reach = 1  # number of steps that each sum holds so far
        while reach < len(episode):
            episode[:-reach] += DISCOUNT**reach * episode[reach:]
            reach *= 2
    return sums


def _spread(count: int, most: int) -> NDArray[np.intp]:
    """At most so many of `count` places, evenly spread."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _rank_correlation(ours: Floats, theirs: Floats) -> float:
    """Spearman's correlation; 0 where one side is constant."""
    if min(np.ptp(ours), np.ptp(theirs)) <= _EQUAL:
        return 0.0
    return float(np.corrcoef(_ranks(ours), _ranks(theirs))[0, 1].clip(-1.0, 1.0))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, of equal values their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks
