"""Workers and slots of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eureka_agent.settings import SearchSettings, schedule_of
from eureka_agent.training_counts import TrainingCounts


@dataclass(frozen=True)
class Capacity:
    """Training workers, and the slots of each."""

    workers: int
    slots: int


def plan_capacity(settings: SearchSettings, places: int) -> Capacity:
    """Slots for a generation and the baselines, on at most one worker for each of `places` cores or
    GPUs.

    A steady search repeats its best attempts beside its candidates.
    """
    made = TrainingCounts.of(settings)
    beside = made.baselines
    if schedule_of(settings) == "steady":
        beside = max(beside, made.confirmations)
    wanted = max(made.candidates + beside, made.confirmations, made.finals, made.randomised)
    workers = min(settings.workers or places, wanted)
    slots = min(settings.slots, math.ceil(wanted / workers))
    return Capacity(workers, slots)
