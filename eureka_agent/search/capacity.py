"""How many workers and slots a search needs, where the settings leave it open."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eureka_agent.settings import SearchSettings, schedule_of


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
    baselines = 2 * settings.seeds_of_baselines if settings.trains_baselines else 0
    finals = settings.finalists * settings.final_seeds
    candidates = settings.samples * settings.iterations
    repeats = min(settings.confirm, candidates) * settings.confirm_seeds if candidates > 1 else 0
    before = repeats if schedule_of(settings) == "steady" else 0
    wanted = max(settings.samples + max(before, baselines), repeats, finals, 1)
    workers = min(settings.workers or places, wanted)
    slots = min(settings.slots, math.ceil(wanted / workers))
    return Capacity(workers, slots)
