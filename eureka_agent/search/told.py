"""A person's feedback as it is told to a designer."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.interface import Measured, Told
from eureka_agent.feedback.reading import measure_words, measured_attempts, measured_wishes
from eureka_agent.feedback.standing import (
    choices_of,
    comparisons_of_model,
    latest_importance,
    preferences_of,
    standing_wishes,
    what_ranks,
)
from eureka_agent.feedback_records import Given, Mark
from eureka_agent.journal.entries import Planned
from eureka_agent.journal.state import RunState
from eureka_agent.records import Attempt, Stage


def told(run: Run, state: RunState, plan: Planned) -> Told:
    """A person's feedback for a plan's request; nothing in a search that nobody refines."""
    feedback = state.feedback
    if not feedback:
        return Told()
    attempts, chosen, ranks = state.attempts(), choices_of(feedback), what_ranks(feedback)
    by_model = ranks == "model" and comparisons_of_model(feedback)
    wishes = standing_wishes(feedback)
    seen = min((_seen(state, parent) for parent in plan.parents), default=0)
    return Told(
        wishes=wishes,
        heeded=frozenset(each.number for each in wishes if each.number <= seen),
        measures=_measures(run, wishes, state),
        importance=latest_importance(feedback),
        marks=tuple(each for each in feedback if isinstance(each.feedback, Mark)),
        choices=len(chosen),
        strengths=preferences_of(attempts, feedback).in_order() if chosen else (),
        by_choices=ranks == "choices",
        judged=preferences_of(attempts, feedback, "model").in_order() if by_model else (),
    )


def _measures(run: Run, wishes: Sequence[Given], state: RunState) -> dict[int, Measured]:
    """Measures of the wishes in the trained attempts."""
    names = [each.id for each in state.attempts() if each.stage is Stage.TRAINED]
    return {
        number: Measured(
            measure_words(measure, run.description),
            measured_attempts(measure, run.folder, names),
        )
        for number, measure in measured_wishes(wishes)
    }


def knows_wishes(attempt: Attempt, state: RunState) -> bool:
    """True for an attempt that was planned after all standing wishes were said."""
    seen = _seen(state, attempt.id)
    return all(given.number <= seen for given in standing_wishes(state.feedback))


def _seen(state: RunState, attempt: str) -> int:
    """Number of the last entry that was known to an attempt's plan; 0 without a plan."""
    known = state.by_id.get(attempt)
    plan = None if known is None else state.plans.get((known.iteration, known.sample))
    return 0 if plan is None else plan.seen
