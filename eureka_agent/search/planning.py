"""The size of a new run from its budget, with the cache that the plan needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from eureka_agent.archive.cache import BaselineCache
from eureka_agent.archive.run_folder import runs_folder
from eureka_agent.fleet.devices import Hardware
from eureka_agent.records import TaskDescription
from eureka_agent.search.budget import Budget
from eureka_agent.search.budget_plan import (
    MOST_SAMPLES,
    PLANNED_SETTINGS,
    CostModel,
    Plan,
    plan,
)
from eureka_agent.search.card import card_for
from eureka_agent.search.seeds import final_seeds
from eureka_agent.search.wall_time import SearchTimes
from eureka_agent.settings import SearchSettings


async def plan_within(
    budget: Budget,
    settings: SearchSettings,
    given: Collection[str],
    baselines: Callable[[SearchSettings], int],
    times: Callable[[SearchSettings], Awaitable[SearchTimes]],
) -> Plan:
    """The settings that fit the budget; those `given` stay as they are. `times` measures the pace
    with some settings, for a budget in wall time. Raises SettingsError if nothing fits."""
    if all(name in given for name in PLANNED_SETTINGS):
        return Plan(
            settings,
            f"the budget of {budget.text} chooses nothing: all that it could is set by hand",
        )
    seconds = None
    if budget.seconds is not None:
        samples = {} if "samples" in given else {"samples": MOST_SAMPLES}
        seconds = (await times(settings.model_copy(update=samples))).seconds
    return plan(settings, given, CostModel(budget, baselines, seconds))


class MissingBaselines:
    """Counts the baselines' trainings that neither card nor cache has."""

    def __init__(self, description: TaskDescription, hardware: Hardware) -> None:
        self._description = description
        self._hardware = hardware
        self._rewards = description.baselines.values()
        self._known: dict[tuple[int | None, ...], int] = {}

    def __call__(self, settings: SearchSettings) -> int:
        key = (
            settings.env_steps,
            settings.baseline_seeds,
            settings.seeds_of_baselines,
            settings.trains_baselines,
        )
        if key not in self._known:
            self._known[key] = self._missing(settings)
        return self._known[key]

    def _missing(self, settings: SearchSettings) -> int:
        if card_for(self._description, settings, self._hardware.kind)[0] is not None:
            return 0
        cache = BaselineCache(runs_folder(), self._description, settings, self._hardware.kind)
        seeds = final_seeds(settings.seeds_of_baselines)
        return sum(cache.find(reward, seed) is None for reward in self._rewards for seed in seeds)
