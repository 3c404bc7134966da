"""Feedback that stands, what ranks the attempts, and a model's agreement with a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eureka_agent import wording
from eureka_agent.feedback.preferences import Preferences, preferences, wins_of
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Edit,
    Given,
    Importance,
    Judge,
    Judgement,
    Wish,
)
from eureka_agent.records import Attempt, Stage, Strength

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
    """A person's choices among clips and comparisons of pairs."""
    return tuple(each for each in feedback if isinstance(each.feedback, Choice | Comparison))


def comparisons_of_model(feedback: Sequence[Given]) -> tuple[Comparison, ...]:
    """A model's comparisons of pairs."""
    judgements = (each.feedback for each in feedback if isinstance(each.feedback, Judgement))
    return tuple(comparison for each in judgements for comparison in each.comparisons)


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
    """The attempts for a strategy: where strengths rank them, with the strength in place of the
    fitness."""

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


def judged_words(model: str, comparisons: int, agreement: Agreement | None) -> str:
    """Clause on a model that judges, and on how far it agrees with the person."""
    words = f"{model} judged {wording.plural(comparisons, 'pair')} from pictures"
    return words if agreement is None else f"{words}; {agreement}"
