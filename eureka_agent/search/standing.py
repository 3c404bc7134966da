"""How the attempts stand when a generation is designed, as a function of the archive alone.

A search that works ahead designs a generation while the one before it is still in training. All
attempts are then compared where the youngest of them are: by their scores at the last rung. What
came later is left out, also where it happens to be known already, so that a resumed run designs the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eureka_agent.analysis.diagnose import diagnose
from eureka_agent.records import (
    Attempt,
    CheckpointRecord,
    CurvePoint,
    Midway,
    Outcome,
    RungScore,
    Stage,
    TaskDescription,
)
from eureka_agent.search.racing import Rungs
from eureka_agent.settings import SearchSettings

EPISODES_LAG = 2
"""A search that works ahead knows the ends of trainings of so many generations before, and of none
after."""
REPEATS_LAG = 3
"""The same of repeats, which are made when a generation has ended."""


def works_ahead(settings: SearchSettings, description: TaskDescription) -> bool:
    """Whether generations are designed before the ones before them have ended: not where a training
    cannot pause, or has no rung."""
    several = settings.iterations > 1
    return (
        settings.work_ahead
        and several
        and description.restorable
        and bool(rungs_of(settings).places)
    )


def rungs_of(settings: SearchSettings) -> Rungs:
    """The places at which a search compares its candidates."""
    return Rungs(settings, settings.rungs)


def broken_off_outcome(checkpoints: Sequence[CheckpointRecord]) -> Outcome:
    """What a training gave up to these checkpoints: no policy, so no fitness."""
    known = [
        (record.fitness, place)
        for place, record in enumerate(checkpoints)
        if record.fitness is not None
    ]
    best = max(known, default=(None, len(checkpoints) - 1))
    return Outcome(
        env_steps=checkpoints[-1].env_steps,
        seconds=0.0,
        checkpoints=tuple(checkpoints),
        best_checkpoint=best[1],
        training_fitness=best[0],
    )


def midway_of(
    points: Sequence[CurvePoint],
    score: RungScore | None,
    rungs: Rungs,
    description: TaskDescription,
    trajectories: Path | None = None,
) -> Midway:
    """What there is to know of a training whose points end at the last rung, of its score there,
    and of the episodes that this rests on."""
    checkpoints = rungs.checkpoints(points)
    fitness, evaluation = (None, None) if score is None else (score.fitness, score.evaluation)
    outcome = broken_off_outcome(checkpoints).model_copy(update={"fitness": fitness})
    diagnosis = diagnose(outcome, points, evaluation, description, "", trajectories, ended=False)
    return Midway(fitness=fitness, checkpoints=checkpoints, diagnosis=diagnosis)


def standing(attempts: Sequence[Attempt], iteration: int, rungs: Rungs) -> list[Attempt]:
    """The attempts before generation `iteration` as they stand when it is designed; their fitness
    is their score at the last rung."""
    return [
        _under_way(attempt)
        if attempt.iteration == iteration - 1
        else _ended(attempt, iteration, rungs)
        for attempt in attempts
        if attempt.iteration < iteration
    ]


def says_something(generation: Sequence[Attempt]) -> bool:
    """Whether the score of any of these attempts was known at its last rung."""
    return any(
        attempt.midway is not None and attempt.midway.fitness is not None for attempt in generation
    )


def _under_way(attempt: Attempt) -> Attempt:
    """An attempt whose training may have ended by now, or not: as if it had just come past the last
    rung."""
    if attempt.midway is None:
        return attempt
    outcome = broken_off_outcome(attempt.midway.checkpoints).model_copy(
        update={"fitness": attempt.midway.fitness}
    )
    return attempt.model_copy(
        update={
            "stage": Stage.TRAINED,
            "reason": "",
            "outcome": outcome,
            "diagnosis": attempt.midway.diagnosis,
            "repeats": (),
        }
    )


def _ended(attempt: Attempt, iteration: int, rungs: Rungs) -> Attempt:
    """With what its repeats that are known say of its luck: they were not scored at a rung, and
    count by how they differ from the first training."""
    if attempt.stage is not Stage.TRAINED or attempt.outcome is None:
        return attempt
    score, end = rungs.score(len(rungs.places) - 1, attempt), attempt.outcome.fitness
    gained = None if score is None or end is None else end - score
    repeats = [
        repeat.model_copy(update={"outcome": _without(repeat.outcome, gained)})
        for repeat in attempt.repeats
        if repeat.iteration <= iteration - REPEATS_LAG
    ]
    return attempt.model_copy(
        update={"outcome": _without(attempt.outcome, gained), "repeats": tuple(repeats)}
    )


def _without(outcome: Outcome | None, gained: float | None) -> Outcome | None:
    """An outcome less what the first training gained behind the last rung; without a fitness where
    that is not known."""
    if outcome is None or outcome.fitness is None:
        return outcome
    return outcome.model_copy(
        update={"fitness": None if gained is None else outcome.fitness - gained}
    )
