"""Noise of a task's trainings: how far the seeds of its baselines lie apart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from eureka_agent.records import BASELINES, FinalTraining


def training_noise(trainings: Sequence[FinalTraining]) -> float:
    """Standard deviation of fitness between seeds of one reward, pooled over the human and the sparse one: √(Σ (nᵢ − 1) sᵢ² / Σ (nᵢ − 1)).

    In the fitness' unit, at the end of a training. 0 where no baseline has two seeds that did not fail.
    """
    squares, degrees_of_freedom = 0.0, 0
    for name in BASELINES:
        outcomes = [training.outcome for training in trainings if training.name == name]
        known = [each.fitness for each in outcomes if each is not None and each.fitness is not None]
        if len(known) > 1:
            squares += (len(known) - 1) * statistics.variance(known)
            degrees_of_freedom += len(known) - 1
    return math.sqrt(squares / degrees_of_freedom) if degrees_of_freedom else 0.0


def noise_at(share: float, noise: float) -> float:
    """The noise after this share of a training, where it is `noise` at the end.

    Differences between seeds add up from update to update; like those of a random walk they are taken to grow with the root of the steps.
    """
    return noise * math.sqrt(share)
