"""Lineages of attempts, by pure functions: changes, and what they gave."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from eureka_agent.analysis.coverage import Coverage, coverage
from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.source_tools import difference
from eureka_agent.journal.state import RunState
from eureka_agent.records import Attempt, Score, Stage
from eureka_agent.search.scoring import score_table
from eureka_agent.search.strategies import last_revisions
from eureka_agent.wording import significant

MOST_CHILDREN = 5
"""Most children of an attempt that are described, newest first."""
_ENDED = (Stage.TRAINED, Stage.FAILED)


def children_of(parent: str, history: Sequence[Attempt]) -> list[Attempt]:
    """The trained attempts whose first parent is this one, newest first."""
    return [
        attempt
        for attempt in reversed(last_revisions(history))
        if attempt.stage in _ENDED and attempt.proposal.parents[:1] == (parent,)
    ]


def changes(attempt: Attempt, history: Sequence[Attempt]) -> tuple[str, ...]:
    """Descriptions of the change from its parent, and to each child, with their fitness."""
    known = {each.id: each for each in history}
    made_from = [known[each] for each in attempt.proposal.parents[:1] if each in known]
    return (
        *(
            f"{attempt.id} itself, made from {parent.id}: {_change(parent, attempt)}"
            for parent in made_from
        ),
        *(
            f"{child.id}, made from {attempt.id}: {_change(attempt, child)}"
            for child in children_of(attempt.id, history)[:MOST_CHILDREN]
        ),
    )


def _change(before: Attempt, after: Attempt) -> str:
    change = (
        f"{difference(before.proposal.reward.source, after.proposal.reward.source)}: fitness"
        f" {significant(before.fitness)}"
    )
    if after.stage is Stage.FAILED:
        return f"{change} → its training failed: {after.reason}"
    trainings = f"{_trainings(before)} against {_trainings(after)}"
    return f"{change} → {significant(after.fitness)} ({trainings})"


def _trainings(attempt: Attempt) -> str:
    count = len(attempt.fitness_per_seed)
    return "one training" if count == 1 else f"the mean of {count} trainings"


def coverage_so_far(run: Run, state: RunState) -> Coverage | None:
    """Lack of coverage of all that a run has trained up to `state`."""
    scores, steps = score_table(state.trainings()), run.settings.env_steps
    return coverage(state.attempts(), scores, run.description, steps)


def seed_spread(history: Sequence[Attempt], references: Sequence[Score] = ()) -> float | None:
    """Standard deviation between trainings of one reward, pooled; None if nothing was trained twice. A
    baseline that always comes to the same says nothing of the noise of the others."""
    trained = [attempt.fitness_per_seed for attempt in history]
    of_baselines = (
        tuple(value for value in score.fitness if value is not None) for score in references
    )
    trained += [values for values in of_baselines if len(set(values)) > 1]
    repeated = [values for values in trained if len(values) > 1]
    if not repeated:
        return None
    freedom = sum(len(values) - 1 for values in repeated)
    return math.sqrt(
        sum((len(values) - 1) * statistics.variance(values) for values in repeated) / freedom
    )
