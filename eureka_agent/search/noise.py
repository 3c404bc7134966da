"""Noise of trainings, measured between seeds of the baselines.

It is measured at the rung, not at the end: on a task that all seeds solve there is no spread at the
end, but a wide one while some are still learning (benchmarks/LOG.md). The values are those of the
training curves, of exploring policies, and cost nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from eureka_agent.records import BASELINES, FinalTraining


def training_noise(trainings: Sequence[FinalTraining], checkpoint: int) -> float:
    """Standard deviation of fitness between seeds of one reward at a checkpoint, in the fitness'
    unit, pooled over the baselines: √(Σ (nᵢ − 1) sᵢ² / Σ (nᵢ − 1)). It is 0 if no baseline has two
    seeds that reached it."""
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
