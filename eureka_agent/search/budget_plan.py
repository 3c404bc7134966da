"""The settings that a budget chooses: those that the user did not give."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass

from eureka_agent import wording
from eureka_agent.archive.cache import BaselineCache
from eureka_agent.archive.run_folder import runs_folder
from eureka_agent.errors import SettingsError
from eureka_agent.fleet.devices import Hardware
from eureka_agent.records import TaskDescription
from eureka_agent.search.budget import SearchBudget, parse_budget, steps_text, time_limit, time_text
from eureka_agent.search.card import card_for
from eureka_agent.search.clock import SearchClock
from eureka_agent.search.seeds import final_seeds
from eureka_agent.settings import MOST_ITERATIONS, SearchSettings
from eureka_agent.training_counts import TrainingCounts

Baselines = Callable[[SearchSettings], int]
"""Number of the baselines' trainings that a search has to make."""
PLANNED_SETTINGS = {"iterations", "samples", "final_seeds", "finalists", "env_steps", "baselines"}
MOST_SAMPLES, LEAST_SAMPLES, LEAST_FINAL_SEEDS = 16, 2, 3
LEAST_BASELINE_SEEDS = 2
"""One seed of a baseline has no spread and so no comparison."""
_PREFERRED_SAMPLES, _ENOUGH, _ENOUGH_DRAFTED = 8, 5, 12
"""Samples that come first, and generations before a larger budget goes to more samples: five as
in Eureka (Ma et al. 2023), more where drafts are compared (benchmarks/LOG.md)."""
_REDUCED = ("baselines", "baseline_seeds", "final_seeds", "finalists", "env_steps")


@dataclass(frozen=True)
class CostModel:
    """Costs of searches in the unit of a budget."""

    budget: SearchBudget
    baselines: Baselines
    seconds: Callable[[SearchSettings], float] | None = None
    """Wall time of a search, for a budget in wall time."""

    def env_steps(self, settings: SearchSettings) -> int:
        """Env steps of the whole search, at most."""
        made = TrainingCounts.of(settings, baselines=self.baselines(settings))
        return made.most(settings.iterations) * settings.steps_of_a_training

    def of(self, settings: SearchSettings) -> float:
        """Seconds or env steps of the whole search."""
        return self.env_steps(settings) if self.seconds is None else self.seconds(settings)

    def fits(self, settings: SearchSettings) -> bool:
        """True if a search with these settings stays within the budget."""
        return self.of(settings) <= (self.budget.seconds or self.budget.env_steps or 0)


async def plan_within(
    settings: SearchSettings,
    given: Collection[str],
    baselines: Baselines,
    clock: Callable[[SearchSettings], Awaitable[SearchClock]],
) -> tuple[SearchSettings, str]:
    """The settings that fit the budget, or `--max-time` if that is tighter, and a sentence on them.
    `clock` measures the pace for a budget in wall time. Raises SettingsError if nothing fits."""
    budget, seconds = parse_budget(settings.budget or ""), None
    if set(given) >= PLANNED_SETTINGS:
        text = f"the budget of {budget.text} chooses nothing: all that it could is set by hand"
        return settings, text
    if budget.seconds is not None and (limit := time_limit(settings)) is not None:
        budget = SearchBudget(limit.text, limit.seconds)
        samples = {} if "samples" in given else {"samples": MOST_SAMPLES}
        seconds = (await clock(settings.model_copy(update=samples))).seconds
    return plan(settings, given, CostModel(budget, baselines, seconds))


def missing_baselines(
    description: TaskDescription, hardware: Hardware, *, own_metric: bool = True
) -> Baselines:
    """Counts the baselines' trainings that card and cache lack; `own_metric`: the task's counts."""
    known: dict[tuple[int | None, ...], int] = {}

    def missing(settings: SearchSettings) -> int:
        seeds = final_seeds(settings.seeds_of_baselines if settings.trains_baselines else 0)
        if not own_metric:
            return len(seeds)
        key = settings.env_steps, settings.baseline_seeds, len(seeds)
        if key not in known:
            card, _ = card_for(description, settings, hardware.kind)
            cache = BaselineCache(runs_folder(), description, settings, hardware.kind)
            known[key] = sum(
                card is None and cache.find(reward, seed) is None
                for reward in description.baselines.values()
                for seed in seeds
            )
        return known[key]

    return missing


def plan(
    settings: SearchSettings, given: Collection[str], costs: CostModel
) -> tuple[SearchSettings, str]:
    """The largest search within the budget, and a sentence on it. Settings that are `given` stay.

    Two generations of four with drafts, else one of eight, come first; what they need gives way in
    the order of `_reductions`. What is left goes to generations, then samples, then generations."""

    def changed(base: SearchSettings, **sizes: int) -> SearchSettings:
        return base.model_copy(update={key: sizes[key] for key in sizes if key not in given})

    def grown(base: SearchSettings, name: str, most: int) -> SearchSettings:
        """The settings with the largest value of one that fits."""
        values = range(getattr(base, name) + 1, most + 1)
        fitting = bisect_left(
            values, True, key=lambda value: not costs.fits(changed(base, **{name: value}))
        )
        return changed(base, **{name: values.start - 1 + fitting})

    one = "iterations" in given and settings.iterations <= 1
    drafted = settings.drafts_of_each > 1 and not one
    search = changed(settings, iterations=1, samples=_PREFERRED_SAMPLES)
    for step in _reductions(settings):
        smaller = search.model_copy(update=step)
        cheaper = not step or costs.env_steps(smaller) < costs.env_steps(search)
        if step.keys() & set(given) or not cheaper:
            continue
        search = smaller
        shapes = [({"iterations": 2, "samples": 4}, _ENOUGH_DRAFTED)] if drafted else []
        for shape, enough in [*shapes, ({}, _ENOUGH)]:
            found = changed(search, **shape)
            if costs.fits(found):
                found = grown(grown(found, "iterations", enough), "samples", MOST_SAMPLES)
                if "samples" in given or found.samples == MOST_SAMPLES:
                    found = grown(found, "iterations", MOST_ITERATIONS)
                return found, _sentence(settings, found, costs)
    raise _too_small(search, costs)


def _reductions(settings: SearchSettings) -> Iterator[dict[str, int | None]]:
    """Changes of settings in the order in which they give way, nothing first."""
    yield {}
    for seeds in range(settings.seeds_of_baselines - 1, LEAST_BASELINE_SEEDS - 1, -1):
        yield {"baselines": True, "baseline_seeds": seeds}
    yield {"baselines": False, "baseline_seeds": None}
    for name, value, least in (
        ("final_seeds", settings.final_seeds, LEAST_FINAL_SEEDS),
        ("finalists", settings.finalists, 1),
        ("samples", _PREFERRED_SAMPLES, LEAST_SAMPLES),
    ):
        for fewer in range(value - 1, least - 1, -1):
            yield {name: fewer}
    for percent in range(99, 24, -1):
        updates = math.ceil(settings.updates * percent / 100)
        yield {"env_steps": updates * settings.num_envs * settings.horizon}


def _size(settings: SearchSettings) -> str:
    """Such as `1 generation of 8, 3 finalists from 5 seeds, 10,000 env steps a training`."""
    parts = [f"{wording.plural(settings.iterations, 'generation')} of {settings.samples}"]
    if settings.finalists:
        seeds = wording.plural(settings.final_seeds, "seed")
        parts.append(f"{wording.plural(settings.finalists, 'finalist')} from {seeds}")
    if settings.trains_baselines:
        parts.append(f"baselines from {settings.seeds_of_baselines}")
    if settings.randomise:
        parts.append(wording.plural(settings.randomise, "distribution") + " of parameters")
    return ", ".join([*parts, f"{settings.env_steps:,} env steps a training"])


def _too_small(least: SearchSettings, costs: CostModel) -> SettingsError:
    flag = "--max-time" if "--max-time" in costs.budget.text else "--budget"
    unit, needed = " env steps", steps_text(costs.of(least))
    if costs.seconds is not None:
        unit, needed = "", time_text(costs.of(least))
    return SettingsError(
        f"the budget of {costs.budget.text}{unit} is too small: the smallest search here takes"
        f" {needed}{unit} ({_size(least)})",
        f"take {flag} {needed} or more, or set by hand what matters less to you"
        " (--no-baselines, --finalists 0, --confirm 0)",
    )


def _sentence(asked: SearchSettings, found: SearchSettings, costs: CostModel) -> str:
    """Such as `"the budget of 5M gives 1 generation of 8, …: at most about 4.9M env steps"`."""
    cost = f"at most about {wording.count(costs.of(found))} env steps"
    if costs.seconds is not None:
        cost = f"about {wording.duration(costs.of(found))}"
    reduced = [
        name.replace("_", " ") for name in _REDUCED if getattr(asked, name) != getattr(found, name)
    ]
    text = f"the budget of {costs.budget.text} gives {_size(found)}: {cost}"
    return text + (f"; reduced to fit: {', '.join(reduced)}" if reduced else "")
