"""Rungs: checkpoints of a training at which its policy is scored without exploration noise, since
the curves of exploring policies tell much less (benchmarks/LOG.md)."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import CheckpointRecord, Outcome
from eureka_agent.settings import SearchSettings
from eureka_agent.summaries import checkpoint_iterations

PRACTICE_SHARE = 0.2
"""Part of a training after which episodes are kept: what policies do there, and neither before nor
at the end, tells most of the credit that a reward gives (benchmarks/LOG.md)."""
PRACTICE_EPISODES = 2


def rung_env_steps(settings: SearchSettings) -> tuple[int, ...]:
    """Env steps at the rungs: the first checkpoints after the given parts of a training, without
    its last one."""
    return _env_steps_at(settings, settings.rungs)


def practice_env_steps(settings: SearchSettings) -> tuple[int, ...]:
    """Env steps at which episodes of a policy that has only begun to learn are kept; none where no
    drafts are compared on them."""
    return _env_steps_at(settings, (PRACTICE_SHARE,)) if settings.drafts_of_each > 1 else ()


def _env_steps_at(settings: SearchSettings, shares: Sequence[float]) -> tuple[int, ...]:
    """Env steps of the first checkpoints after these parts of a training, without its last one."""
    due = checkpoint_iterations(settings.updates, settings.checkpoints)[:-1]
    reached = (
        next((each for each in due if each >= share * settings.updates), None) for share in shares
    )
    rungs = sorted({iteration for iteration in reached if iteration is not None})
    return tuple(each * settings.horizon * settings.num_envs for each in rungs)


def broken_off_outcome(checkpoints: Sequence[CheckpointRecord]) -> Outcome:
    """The outcome of a training that ended early: no policy, so no fitness."""
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
