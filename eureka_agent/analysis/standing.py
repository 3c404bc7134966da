"""Feedback that stands, what ranks the attempts, and a model's agreement with a person."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eureka_agent import wording
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Edit,
    Feedback,
    Given,
    Importance,
    Judge,
    Judgement,
    Wish,
)
from eureka_agent.records import Attempt, Stage, Strength

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
        place = self.names.index(name)
        return float(self.mean[place]), math.sqrt(float(self.covariance[place, place]))

    def in_order(self) -> tuple[tuple[str, float, float], ...]:
        """Attempts with mean and deviation, strongest first."""
        order = sorted(self.names, key=lambda name: -self.strength(name)[0])
        return tuple((name, *self.strength(name)) for name in order)

    def means(self) -> dict[str, float]:
        return dict(zip(self.names, self.mean.tolist(), strict=True))

    @cached_property
    def chance_best(self) -> dict[str, float]:
        """Probability of each to be the strongest, from draws of the posterior."""
        generator = np.random.default_rng(0)
        draws = generator.multivariate_normal(self.mean, self.covariance, _DRAWS, method="cholesky")
        wins = np.bincount(draws.argmax(axis=1), minlength=len(self.names)) / _DRAWS
        return dict(zip(self.names, wins.tolist(), strict=True))

    def next_pair(self, among: Sequence[str]) -> tuple[str, str] | None:
        """The pair whose comparison tells most about which is the best; None for fewer than two. A
        comparison's information is the mutual information of answer and strengths (Houlsby et al.
        2011, "Bayesian active learning for classification and preference learning"), weighed by the
        chance that one of the two is the best."""
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


Ranks: TypeAlias = Literal["fitness", "choices", "model"]
FEWEST_PAIRS = 5
"""Pairs below which a share says nothing."""


def standing_wishes(feedback: Sequence[Given]) -> tuple[Given, ...]:
    """Wishes in the order in which they were said."""
    return tuple(each for each in feedback if isinstance(each.feedback, Wish))


def latest_importance(feedback: Sequence[Given]) -> tuple[Given, ...]:
    """The last order of terms and the last order of metrics, in the order of their records."""
    last = {each.feedback.of: each for each in feedback if isinstance(each.feedback, Importance)}
    return tuple(sorted(last.values(), key=lambda each: each.number))


def choices_of(feedback: Sequence[Given]) -> tuple[Given, ...]:
    return tuple(each for each in feedback if isinstance(each.feedback, Choice | Comparison))


def comparisons_of_model(feedback: Sequence[Given]) -> tuple[Comparison, ...]:
    judgements = (each.feedback for each in feedback if isinstance(each.feedback, Judgement))
    return tuple(comparison for each in judgements for comparison in each.comparisons)


def sub_goals_of(feedback: Sequence[Given]) -> tuple[str, ...] | None:
    """The sub-goals by which a model judges, in order, perhaps none; None before it was asked."""
    judgements = (each.feedback for each in feedback if isinstance(each.feedback, Judgement))
    return next((each.sub_goals for each in judgements if each.sub_goals is not None), None)


def what_ranks(feedback: Sequence[Given]) -> Ranks:
    """Ranking that holds for the attempts: the last word on it counts."""
    judges = [each.feedback.by for each in feedback if isinstance(each.feedback, Judge)]
    return judges[-1] if judges else "fitness"


def pending_edits(feedback: Sequence[Given], planned: set[int]) -> tuple[Given, ...]:
    """Rewards of the person that no plan has taken yet. `planned`: numbers of those taken."""
    return tuple(
        each for each in feedback if isinstance(each.feedback, Edit) and each.number not in planned
    )


def preferences_of(
    attempts: Sequence[Attempt], feedback: Sequence[Given], by: Ranks = "choices"
) -> Preferences:
    """Strengths of the trained attempts, from a person's choices or from a model's comparisons."""
    names = [each.id for each in attempts if each.stage is Stage.TRAINED]
    if by == "model":
        return preferences(names, comparisons_of_model(feedback))
    return preferences(names, [each.feedback for each in choices_of(feedback)])


def with_strengths(attempts: Sequence[Attempt], feedback: Sequence[Given]) -> tuple[Attempt, ...]:
    """The attempts; where strengths rank them, each trained one has its own."""
    by = what_ranks(feedback)
    if by == "fitness":
        return tuple(attempts)
    found = preferences_of(attempts, feedback, by)

    def strong(attempt: Attempt) -> Attempt:
        mean, deviation = found.strength(attempt.id)
        strength = Strength(mean=mean, deviation=deviation, by=by)
        return attempt.model_copy(update={"strength": strength})

    return tuple(strong(each) if each.stage is Stage.TRAINED else each for each in attempts)


def judged(attempts: Sequence[Attempt], feedback: Sequence[Given]) -> tuple[Attempt, ...]:
    """The attempts for a strategy: where strengths rank, they stand for the fitness."""

    def by_strength(attempt: Attempt) -> Attempt:
        if attempt.strength is None or attempt.outcome is None:
            return attempt
        outcome = attempt.outcome.model_copy(update={"fitness": attempt.strength.mean})
        return attempt.model_copy(update={"outcome": outcome, "repeats": ()})

    return tuple(map(by_strength, with_strengths(attempts, feedback)))


@dataclass(frozen=True)
class Agreement:
    """Pairs of which a person preferred one, and those in which the model has the same first."""

    agreed: int
    pairs: int

    def __str__(self) -> str:
        return f"it agrees with your choices in {self.agreed} of {self.pairs}"


def agreement(attempts: Sequence[Attempt], feedback: Sequence[Given]) -> Agreement | None:
    """The agreement so far; None for fewer than `FEWEST_PAIRS` pairs. Pairs that a person calls
    alike, or with an attempt that the model has not compared, are left out."""
    wins_by_model = (wins_of(each) for each in comparisons_of_model(feedback))
    compared = {name for wins in wins_by_model for pair in wins for name in pair}
    seen = compared.intersection(each.id for each in attempts if each.stage is Stage.TRAINED)
    pairs: list[tuple[str, str]] = []
    for each in choices_of(feedback):
        wins = set(wins_of(each.feedback))  # much better is one pair, too
        pairs += [pair for pair in wins if pair[::-1] not in wins and seen.issuperset(pair)]
    if len(pairs) < FEWEST_PAIRS:
        return None
    strengths = preferences_of(attempts, feedback, "model").means()
    agreed = sum(strengths[winner] > strengths[loser] for winner, loser in pairs)
    return Agreement(agreed, len(pairs))


def judged_words(
    model: str, comparisons: int, agreement: Agreement | None, sub_goals: Sequence[str]
) -> str:
    """Clause on a model that judges, by what, and on how far it agrees with the person."""
    words = f"{model} judged {wording.plural(comparisons, 'pair')} from pictures"
    if sub_goals:
        steps = "; ".join(f"({number}) {goal}" for number, goal in enumerate(sub_goals, 1))
        words += f" by the sub-goals {steps}"
    return words if agreement is None else f"{words}; {agreement}"
