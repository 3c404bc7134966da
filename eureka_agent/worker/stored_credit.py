"""Credit that a reward gives to stored steps, beside the fitness's, before any training. A policy
gradient follows advantages, so a reward is as good a teacher as it orders steps like the fitness:
by their value, by the discounted return that follows, and by that return beyond what is usual in
the state. Comparing rewards so, without a training, is the idea of EPIC (Gleave et al. 2021), DARD
(Wulfe et al. 2022) and STARC (Skalse et al. 2024); what it tells is in benchmarks/LOG.md."""

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
_RANK_DIGITS = 4
_EQUAL = 1e-12
_ROUNDING = 1e-9
"""Part of the largest value by which sums of equal values may differ."""


class StoredCredit:
    """Credit that the fitness gives to stored steps. Those of one policy's episodes are compared
    with each other and never with another's, as an update compares what one policy does."""

    def __init__(
        self,
        fitness: Floats,
        observations: Floats,
        lengths: Sequence[Sequence[int]],
        ended: Sequence[bool],
    ) -> None:
        """`fitness`: per step, shape (steps,), policy after policy, episode after episode of these
        lengths. `observations`: a policy's inputs, shape (steps, num_observations). `ended`: by
        episode, whether it ended by itself and not by its time limit."""
        self._lengths = [length for policy in lengths for length in policy]
        # returns of a fitness that is paid at a time limit tell the steps left, and by their number
        # a reward's returns to that limit tell its sign
        last = np.cumsum(self._lengths) - 1
        at_limits = fitness[last[np.invert(ended)]]
        is_paid_there = at_limits.any() and not np.delete(fitness, last).any()
        self._going_on = going_on(self._lengths, ended) if is_paid_there else 1.0
        self._taken = _spread(len(fitness), MOST_STEPS)
        ends = np.cumsum([sum(policy) for policy in lengths])
        self._policies = np.searchsorted(self._taken, ends[:-1])
        """Places in `_taken` at which the next policy's steps begin."""
        self._usual = [_Usual(each) for each in self._by_policy(observations[self._taken])]
        self._fitness = self._parts(fitness)

    def of(self, totals: Floats) -> Credit | None:
        """The credit of a reward with these totals, shape (steps,), by the ranks of at most
        `MOST_RANKED_STEPS` steps; None where one is not finite. A correlation is 0 where the
        reward, or the fitness, is the same in all steps."""
        if not np.isfinite(totals).all():
            return None
        parts = self._parts(totals)
        pairs = zip(parts, self._fitness, strict=True)
        step, to_go, advantage = (_correlation(ours, theirs) for ours, theirs in pairs)
        shown = _spread(len(self._taken), MOST_RANKED_STEPS)
        ranks = np.concatenate([part[shown] for part in parts]).round(_RANK_DIGITS)
        return Credit(step=step, to_go=to_go, advantage=advantage, ranks=tuple(ranks.tolist()))

    def _parts(self, values: Floats) -> list[Floats]:
        """Ranks within their policy of values, returns to go, and these beyond the usual."""
        step = self._by_policy(values[self._taken])
        returns = discounted(values, self._lengths) * self._going_on
        to_go = self._by_policy(returns[self._taken])
        pairs = zip(self._usual, to_go, strict=True)
        advantage = [usual.residual(each) for usual, each in pairs]
        parts = step, to_go, advantage
        return [np.concatenate([_ranks(each) for each in part]) for part in parts]

    def _by_policy(self, values: Floats) -> list[Floats]:
        return [each for each in np.split(values, self._policies) if len(each)]


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
        """Residual of returns, which are scaled to deviation 1 first; 0 where they are equal."""
        deviation = returns.std()
        if deviation <= _ROUNDING * np.abs(returns).max():
            return np.zeros_like(returns)
        scaled = (returns - returns.mean()) / deviation
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


def going_on(lengths: Sequence[int], ended: Sequence[bool]) -> Floats:
    """By step, the factor that makes the discounted sum to the end of its episode the one without
    that end, as if the episode went on like the rest of it; 1 where it ended by itself. So a time
    limit cuts no return off, as in a training (Pardo et al. 2018)."""
    factors = [
        np.ones(length) if is_whole else 1.0 / (1.0 - DISCOUNT ** np.arange(length, 0, -1))
        for length, is_whole in zip(lengths, ended, strict=True)
    ]
    return np.concatenate(factors)


def _spread(count: int, most: int) -> NDArray[np.intp]:
    """At most so many of `count` places, evenly spread."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _correlation(ours: Floats, theirs: Floats) -> float:
    """Correlation of ranks of mean 0; 0 where one side is constant."""
    lengths = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    return float(np.clip(ours @ theirs / lengths, -1.0, 1.0)) if lengths > _EQUAL else 0.0


def _ranks(values: Floats) -> Floats:
    """Ranks from -0.5 to 0.5, of equal values their mean."""
    unit = _ROUNDING * max(np.abs(values).max(), _EQUAL)
    _, places, counts = np.unique(np.rint(values / unit), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return (ranks - (len(values) + 1) / 2) / len(values)
