"""Attempts along the lines in which they were made from each other: what was changed, what that
gave, and which advice did not help.

Pure functions of the attempts as a generation is designed from them, so that a resumed run tells
its designers the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from eureka_agent.designer.differences import difference
from eureka_agent.records import Attempt, DiagnosisFinding, Operator, Score, Stage
from eureka_agent.search.strategies.history import last_revisions
from eureka_agent.wording import significant

MOST_CHILDREN = 5
"""Children of an attempt that are told of, newest first."""
LEAST_TOLD = 2
"""Children that must have followed an advice in vain before it is not given again: one may be bad
luck."""
_ENDED = (Stage.TRAINED, Stage.STOPPED, Stage.FAILED)
_NOT_TOLD = (Operator.FRESH, Operator.TUNE_WEIGHTS)
"""Operators whose proposals are made without the findings on a parent."""


def children_of(parent: str, history: Sequence[Attempt]) -> list[Attempt]:
    """The attempts that were made from this one first of all, and trained, newest first."""
    return [
        attempt
        for attempt in reversed(last_revisions(history))
        if attempt.stage in _ENDED and attempt.proposal.parents[:1] == (parent,)
    ]


def ancestors_of(attempt: Attempt, known: Mapping[str, Attempt]) -> Iterator[Attempt]:
    """The attempt that this one was made from, the one before that, and so on, as far as they are
    known."""
    seen = {attempt.id}
    while (
        attempt.proposal.parents and (parent := known.get(attempt.proposal.parents[0])) is not None
    ):
        if parent.id in seen:
            return
        seen.add(parent.id)
        yield parent
        attempt = parent


def last_score(attempt: Attempt) -> float | None:
    """Fitness; of what racing stopped, the score at its last rung. None for what has neither."""
    if attempt.stage is Stage.STOPPED:
        return attempt.rungs[-1].fitness if attempt.rungs else None
    return attempt.fitness


def changes(attempt: Attempt, history: Sequence[Attempt]) -> tuple[str, ...]:
    """A line for how the attempt differs from its own parent, and one for each of its children,
    with the fitness before and after."""
    known = {each.id: each for each in history}
    lines = [
        f"{attempt.id} itself, made from {parent.id}: {_change(parent, attempt)}"
        for parent in list(ancestors_of(attempt, known))[:1]
    ]
    return (
        *lines,
        *(
            f"{child.id}, made from {attempt.id}: {_change(attempt, child)}"
            for child in children_of(attempt.id, history)[:MOST_CHILDREN]
        ),
    )


def _change(before: Attempt, after: Attempt) -> str:
    told = (
        f"{difference(before.proposal.reward.source, after.proposal.reward.source)}: fitness"
        f" {significant(before.fitness)}"
    )
    if after.stage is Stage.STOPPED:
        return f"{told} → stopped: {after.reason}"
    if after.stage is Stage.FAILED:
        return f"{told} → its training failed: {after.reason}"
    trainings = f"{_trainings(before)} against {_trainings(after)}"
    return f"{told} → {significant(after.fitness)} ({trainings})"


def _trainings(attempt: Attempt) -> str:
    count = len(attempt.fitness_per_seed)
    return "one training" if count == 1 else f"the mean of {count} trainings"


def vain_findings(attempt: Attempt, history: Sequence[Attempt]) -> tuple[DiagnosisFinding, ...]:
    """The attempt's findings whose advice did not help: given for it or an ancestor, and no child
    that followed was better than that parent."""
    if attempt.diagnosis is None:
        return ()
    known = {each.id: each for each in history}
    line = [attempt, *ancestors_of(attempt, known)]
    return tuple(
        finding
        for finding in attempt.diagnosis.findings
        if any(_in_vain(finding, each, history) for each in line)
    )


def _in_vain(finding: DiagnosisFinding, parent: Attempt, history: Sequence[Attempt]) -> bool:
    given = () if parent.diagnosis is None else parent.diagnosis.findings
    if parent.fitness is None or all(_subject(each) != _subject(finding) for each in given):
        return False
    told = [
        child
        for child in children_of(parent.id, history)
        if child.proposal.operator not in _NOT_TOLD
    ]
    better = [
        child
        for child in told
        if child.stage is Stage.TRAINED
        and child.fitness is not None
        and child.fitness > parent.fitness
    ]
    return len(told) >= LEAST_TOLD and not better


def _subject(finding: DiagnosisFinding) -> tuple[str, str | None, str | None]:
    return finding.code, finding.component, finding.cause


def seed_spread(history: Sequence[Attempt], references: Sequence[Score] = ()) -> float | None:
    """Standard deviation between trainings of one reward, pooled over attempts and baselines that
    were trained more than once; None where none was."""
    trained = [attempt.fitness_per_seed for attempt in history]
    trained += [
        tuple(value for value in score.fitness if value is not None) for score in references
    ]
    repeated = [values for values in trained if len(values) > 1]
    if not repeated:
        return None
    freedom = sum(len(values) - 1 for values in repeated)
    return math.sqrt(
        sum((len(values) - 1) * statistics.variance(values) for values in repeated) / freedom
    )
