"""Entries that tell of made-up attempts."""

from __future__ import annotations

from eureka_agent.journal.entries import AttemptEnded, Judged, Proposed
from eureka_agent.journal.progress import Progress
from eureka_agent.records import Attempt, Verdict


def proposed(attempt: Attempt) -> Proposed:
    """The proposal that an attempt began with."""
    return Proposed(
        attempt=attempt.id,
        iteration=attempt.iteration,
        sample=attempt.sample,
        revision=attempt.revision,
        proposal=attempt.proposal,
        seed=attempt.seed,
    )


def judged(attempt: Attempt) -> Judged:
    """The critic's verdict on it; it passed where it has none."""
    verdict = attempt.verdict or Verdict(findings=(), steps_run=("parse",))
    return Judged(attempt=attempt.id, verdict=verdict)


def ended(attempt: Attempt) -> AttemptEnded:
    """The end of its training."""
    return AttemptEnded(
        attempt=attempt.id,
        stage=attempt.stage,
        reason=attempt.reason,
        retries=attempt.retries,
        outcome=attempt.outcome,
        diagnosis=attempt.diagnosis,
    )


def progress(env_steps: int, fitness: float | None) -> Progress:
    """A point of a curve."""
    return Progress(env_steps=env_steps, fitness=fitness)
