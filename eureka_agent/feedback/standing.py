"""Feedback that stands: what was not withdrawn or overridden, and what ranks the attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from eureka_agent.feedback.preferences import Preferences, preferences
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


def standing_wishes(feedback: Sequence[Given]) -> tuple[Given, ...]:
    """Wishes in the order in which they were said."""
    return tuple(each for each in feedback if isinstance(each.feedback, Wish))


def latest_importance(feedback: Sequence[Given]) -> tuple[Given, ...]:
    """The last order of terms and the last order of metrics, in the order of their records."""
    last: dict[str, Given] = {}
    for each in feedback:
        if isinstance(each.feedback, Importance):
            last[each.feedback.of] = each
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
    return tuple(
        each
        if each.strength is None or each.outcome is None
        else each.model_copy(
            update={
                "outcome": each.outcome.model_copy(update={"fitness": each.strength.mean}),
                "repeats": (),
            }
        )
        for each in with_strengths(attempts, feedback)
    )
