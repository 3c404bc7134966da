"""How many workers and slots a search needs, where the settings leave it open."""

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
    """Slots for a generation and the baselines beside the first one; a worker for each of `places`
    cores or GPUs, as far as there is work.

    A steady search has the repeats of its best in training beside its candidates.
    """
    made = TrainingCounts.of(settings)
    beside = made.baselines
    if schedule_of(settings) == "steady":
        beside = max(beside, made.confirmations)
    wanted = max(made.candidates + beside, made.confirmations, made.finals)
    workers = min(settings.workers or places, wanted)
    slots = min(settings.slots, math.ceil(wanted / workers))
    return Capacity(workers, slots)
