"""Feedback that stands: what was not withdrawn or overridden, and what ranks the attempts."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.feedback.preferences import Preferences, preferences
from eureka_agent.feedback_records import Choice, Comparison, Edit, Given, Importance, Judge, Wish
from eureka_agent.records import Attempt, Stage


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
    """Choices among clips and comparisons of pairs."""
    return tuple(each for each in feedback if isinstance(each.feedback, Choice | Comparison))


def is_judged_by_choices(feedback: Sequence[Given]) -> bool:
    """True where the person's choices rank the attempts."""
    judges = [each.feedback.by for each in feedback if isinstance(each.feedback, Judge)]
    return bool(judges) and judges[-1] == "choices"


def pending_edits(feedback: Sequence[Given], planned: set[int]) -> tuple[Given, ...]:
    """Rewards of the person that no plan has taken yet. `planned`: numbers of those taken."""
    return tuple(
        each for each in feedback if isinstance(each.feedback, Edit) and each.number not in planned
    )


def preferences_of(attempts: Sequence[Attempt], feedback: Sequence[Given]) -> Preferences:
    """Strengths of the trained attempts."""
    names = [each.id for each in attempts if each.stage is Stage.TRAINED]
    return preferences(names, [each.feedback for each in feedback])


def judged(attempts: Sequence[Attempt], feedback: Sequence[Given]) -> tuple[Attempt, ...]:
    """The attempts; where choices rank them, with their strength in place of the fitness."""
    if not is_judged_by_choices(feedback):
        return tuple(attempts)
    strengths = preferences_of(attempts, feedback).means()
    return tuple(
        each
        if each.id not in strengths or each.outcome is None
        else each.model_copy(
            update={
                "outcome": each.outcome.model_copy(update={"fitness": strengths[each.id]}),
                "repeats": (),
            }
        )
        for each in attempts
    )
