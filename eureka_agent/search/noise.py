"""Noise of a task's trainings: how far the seeds of its baselines lie apart where candidates are
compared.

Measured at the rung, not at the end: on a task that all seeds solve there is no spread in the end,
but a wide one while some have taken off and others have not (benchmarks/LOG.md). The curves have it
there for nothing, of exploring policies, where candidates are scored without noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from eureka_agent.records import BASELINES, FinalTraining


def training_noise(trainings: Sequence[FinalTraining], checkpoint: int) -> float:
    """Standard deviation of fitness between seeds of one reward, pooled over the human and the
    sparse one: √(Σ (nᵢ − 1) sᵢ² / Σ (nᵢ − 1)).

    In the fitness' unit, of the curves at this checkpoint. 0 where no baseline has two seeds that
    came so far.
    """
    squares, degrees_of_freedom = 0.0, 0
    for name in BASELINES:
        outcomes = [training.outcome for training in trainings if training.name == name]
        reached = [
            each.checkpoints[checkpoint]
            for each in outcomes
            if each and checkpoint < len(each.checkpoints)
        ]
        known = [record.fitness for record in reached if record.fitness is not None]
        if len(known) > 1:
            squares += (len(known) - 1) * statistics.variance(known)
            degrees_of_freedom += len(known) - 1
    return math.sqrt(squares / degrees_of_freedom) if degrees_of_freedom else 0.0
