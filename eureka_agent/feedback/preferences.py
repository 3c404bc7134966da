"""A Bradley–Terry model of a person's choices between attempts, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from eureka_agent.feedback_records import Choice, Comparison, Feedback, Judgement

PRIOR_VARIANCE = 4.0
"""Variance of a strength: two random attempts differ by about 2.8; one wins 94 of 100 choices."""
_DRAWS = 4000
_LOGISTIC_TO_PROBIT = 1.702
"""Ratio of scales at which a logistic curve is nearest to that of a Gaussian."""
_C = math.sqrt(math.pi * math.log(2.0) / 2.0)
_LEAST_CHANCE = 0.02
"""Chance of being the best below which an attempt is not worth a question."""


@dataclass(frozen=True)
class Preferences:
    """Strengths of attempts that follow from choices. The chance that one is preferred to another
    is the logistic function of the difference (Bradley and Terry 1952)."""

    names: tuple[str, ...]
    mean: NDArray[np.float64]
    """Shape: (attempts,)."""
    covariance: NDArray[np.float64]
    """Shape: (attempts, attempts)."""

    def strength(self, name: str) -> tuple[float, float]:
        """Mean and standard deviation."""
        place = self.names.index(name)
        return float(self.mean[place]), math.sqrt(float(self.covariance[place, place]))

    def in_order(self) -> tuple[tuple[str, float, float], ...]:
        """Attempts with mean and deviation, strongest first."""
        order = sorted(self.names, key=lambda name: -self.strength(name)[0])
        return tuple((name, *self.strength(name)) for name in order)

    def means(self) -> dict[str, float]:
        """Mean strengths by attempt."""
        return dict(zip(self.names, self.mean.tolist(), strict=True))

    @cached_property
    def chance_best(self) -> dict[str, float]:
        """Probability of each to be the strongest, from draws of the posterior."""
        generator = np.random.default_rng(0)
        draws = generator.multivariate_normal(self.mean, self.covariance, _DRAWS, method="cholesky")
        wins = np.bincount(draws.argmax(axis=1), minlength=len(self.names)) / _DRAWS
        return dict(zip(self.names, wins.tolist(), strict=True))

    def next_pair(self, among: Sequence[str]) -> tuple[str, str] | None:
        """The pair whose comparison tells most about which is the best; None for fewer than two.

        A comparison's information is the mutual information of answer and strengths (Houlsby et al.
        2011, "Bayesian active learning for classification and preference learning"), weighed by
        the chance that one of the two is the best.
        """
        chance = self.chance_best
        likely = [name for name in among if chance[name] >= _LEAST_CHANCE]
        if len(likely) < 2:
            likely = sorted(among, key=lambda name: -chance[name])[:2]
        return max(combinations(likely, 2), key=self.worth, default=None)

    def worth(self, pair: tuple[str, str]) -> float:
        """Information of a comparison, weighed by the chance that one of the two is the best."""
        return sum(self.chance_best[name] for name in pair) * self.information(*pair)

    def information(self, first: str, second: str) -> float:
        """Bits that the comparison of two is expected to tell of their strengths."""
        one, other = self.names.index(first), self.names.index(second)
        mean = float(self.mean[one] - self.mean[other]) / _LOGISTIC_TO_PROBIT
        covariance = self.covariance
        variance = covariance[one, one] + covariance[other, other] - 2.0 * covariance[one, other]
        variance = max(float(variance), 0.0) / _LOGISTIC_TO_PROBIT**2
        entropy = _bits(0.5 * math.erfc(-mean / math.sqrt(2.0 * (variance + 1.0))))
        spread = variance + _C**2
        return max(0.0, entropy - _C * math.exp(-(mean**2) / (2.0 * spread)) / math.sqrt(spread))


def _bits(chance: float) -> float:
    """Entropy of a coin."""
    if not 0.0 < chance < 1.0:
        return 0.0
    return -chance * math.log2(chance) - (1.0 - chance) * math.log2(1.0 - chance)


def preferences(names: Sequence[str], feedback: Iterable[Feedback]) -> Preferences:
    """The strengths of `names` after choices and comparisons; others in them are left out."""
    places = {name: place for place, name in enumerate(names)}
    wins = [pair for each in feedback for pair in wins_of(each) if places.keys() >= {*pair}]
    mean, covariance = np.zeros(len(names)), PRIOR_VARIANCE * np.eye(len(names))
    # attempts without an answer keep their prior, independent of all others
    compared = list(dict.fromkeys(name for pair in wins for name in pair))
    if compared:
        numbered = {name: number for number, name in enumerate(compared)}
        data = tuple((numbered[winner], numbered[loser]) for winner, loser in wins)
        found, spread = _posterior(len(compared), data)
        rows = [places[name] for name in compared]
        mean[rows] = found
        covariance[np.ix_(rows, rows)] = spread
    return Preferences(tuple(names), mean, covariance)


@lru_cache(maxsize=32)  # every view and every plan asks for the same
def _posterior(
    many: int, wins: tuple[tuple[int, int], ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and covariance of the strengths of `many` after these wins (winner, loser)."""
    from choix import ep_pairwise  # with scipy, which most commands do without

    # choix takes the answers in the order of numpy's global generator, and a resumed run must
    # decide as the unbroken one
    before = np.random.get_state()
    np.random.seed(0)
    try:
        mean, covariance = ep_pairwise(many, list(wins), alpha=1.0 / PRIOR_VARIANCE)
    finally:
        np.random.set_state(before)
    return mean, covariance


def wins_of(feedback: Feedback) -> list[tuple[str, str]]:
    """Winners and losers. The best of several has won against all others, the worst has lost; much
    better counts twice, and alike is a win for either."""
    match feedback:
        case Comparison(grade=None):
            return []
        case Comparison(first=first, second=second, grade=grade) if grade:
            return [(first, second) if grade > 0 else (second, first)] * abs(grade)
        case Comparison(first=first, second=second):
            return [(first, second), (second, first)]
        case Choice(shown=shown, best=best, worst=worst):
            won = [(best, other) for other in shown if best and other != best]
            return won + [(other, worst) for other in shown if worst and other not in (worst, best)]
        case Judgement(comparisons=comparisons):
            return [win for each in comparisons for win in wins_of(each)]
    return []
