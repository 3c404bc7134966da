"""The plan of a search within a budget: the settings that the user did not give.

Nothing here trains, measures or reads a clock. Wall time comes in as an estimate of it
(`wall_time.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eureka_agent import wording
from eureka_agent.errors import SettingsError
from eureka_agent.search.budget import Budget, steps_text, time_text
from eureka_agent.settings import MOST_ITERATIONS, SearchSettings
from eureka_agent.training_counts import TrainingCounts

PLANNED_SETTINGS = ("iterations", "samples", "final_seeds", "finalists", "env_steps", "baselines")
"""Settings that a budget chooses unless they are given. Slots and workers follow from them
(`capacity.py`)."""
LEAST_SAMPLES, PREFERRED_SAMPLES, MOST_SAMPLES = 2, 8, 16
LEAST_FINAL_SEEDS = 3
LEAST_BASELINE_SEEDS = 2
"""Least seeds of a baseline, since one seed has no spread and so no comparison."""
LEAST_FINALISTS = 1
LEAST_PART_OF_ENV_STEPS = 4
"""Shortest training: one over this of the task's env steps."""


class Shape(NamedTuple):
    """A search that is wanted before anything else."""

    generations: int
    """Generations that must fit."""
    samples: int
    """Samples of each of them."""
    enough: int
    """Generations before a larger budget goes to more samples."""


PLAIN = Shape(1, PREFERRED_SAMPLES, 5)
"""Shape without drafts, of as many generations as Eureka's searches have (Ma et al. 2023)."""
DRAFTED = Shape(2, 4, 12)
"""Shape where drafts are compared: each generation chooses by all trainings before it, so that
small ones find more with as many trainings (benchmarks/LOG.md)."""


class CostModel:
    """The cost of a search with given settings, compared with a budget."""

    def __init__(
        self,
        budget: Budget,
        baselines: Callable[[SearchSettings], int],
        seconds: Callable[[SearchSettings], float] | None = None,
    ) -> None:
        """`baselines` counts trainings that the cache lacks; `seconds` estimates the wall time of a
        search, which a budget in wall time needs."""
        if budget.seconds is not None and seconds is None:
            raise ValueError("a budget in wall time needs an estimate of it")
        self.budget = budget
        self._baselines = baselines
        self._seconds = seconds

    def fits(self, settings: SearchSettings) -> bool:
        """True if a search with these settings stays within the budget."""
        if self.budget.seconds is not None:
            return self.seconds(settings) <= self.budget.seconds
        return self.env_steps(settings) <= (self.budget.env_steps or 0)

    def env_steps(self, settings: SearchSettings) -> float:
        """Env steps of the whole search."""
        made = TrainingCounts.of(settings, baselines=self._baselines(settings))
        return made.most(settings.iterations) * settings.steps_of_a_training

    def seconds(self, settings: SearchSettings) -> float:
        """Wall time of the whole search."""
        assert self._seconds is not None
        return self._seconds(settings)

    def needed(self, settings: SearchSettings) -> str:
        """The cost of these settings in the form of a budget, rounded up."""
        if self.budget.seconds is not None:
            return time_text(self.seconds(settings))
        return steps_text(self.env_steps(settings))


@dataclass(frozen=True)
class Plan:
    """The settings of a search within its budget, with the reasons."""

    settings: SearchSettings
    text: str
    """One sentence for the user."""


def plan(settings: SearchSettings, given: Collection[str], costs: CostModel) -> Plan:
    """The largest search within the budget. `given` names settings that stay as they are.

    A generation of eight comes first, with drafts two of four where these fit. If nothing fits,
    seeds of the baselines are reduced, then the baselines dropped, then final seeds reduced, then
    finalists. If it still does not fit, the generation is smaller, and trainings get shorter only
    if there is no room for two. Raises SettingsError if that does not help.
    """
    levels = _reductions(settings, given, costs)
    found = _first_with(_shapes(settings, given), levels, given, costs)
    if found is None:
        least = _shorter(levels[-1], given, costs)
        search = _largest(least, given, costs, PLAIN)
        if search is None:
            raise _too_small(_smallest(least, given), costs)
        smaller = PLAIN._replace(samples=search.samples)
        found = search if least != levels[-1] else _first_with([smaller], levels, given, costs)
        assert found is not None  # it fits on the last level
    return Plan(found, _sentence(settings, found, costs))


def _shapes(settings: SearchSettings, given: Collection[str]) -> list[Shape]:
    """Shapes, the most wanted first. Drafts are compared from the second generation on."""
    one = "iterations" in given and settings.iterations <= 1
    return [PLAIN] if settings.drafts_of_each == 1 or one else [DRAFTED, PLAIN]


def _first_with(
    shapes: Sequence[Shape],
    levels: Sequence[SearchSettings],
    given: Collection[str],
    costs: CostModel,
) -> SearchSettings | None:
    """The largest search on the first level with room for one of the shapes; None if there is no
    such level."""
    for level in levels:
        for shape in shapes:
            wanted = {"iterations": shape.generations, "samples": shape.samples}
            if costs.fits(_unless_given(level, given, wanted)):
                return _largest(level, given, costs, shape)
    return None


def _too_small(least: SearchSettings, costs: CostModel) -> SettingsError:
    unit = "" if costs.budget.env_steps is None else " env steps"
    return SettingsError(
        f"the budget of {costs.budget.text}{unit} is too small: the smallest search here takes"
        f" {costs.needed(least)}{unit} ({wording.plural(least.iterations, 'generation')} of"
        f" {least.samples}, {wording.plural(least.finalists, 'finalist')},"
        f" {wording.plural(least.final_seeds, 'final seed')}, {least.env_steps:,} env steps a"
        " training)",
        f"take --budget {costs.needed(least)} or more, or set by hand what matters less to you"
        " (--no-baselines, --finalists 0, --confirm 0)",
    )


def _sized(settings: SearchSettings, **sizes: int) -> SearchSettings:
    return settings.model_copy(update=sizes)


def _smallest(settings: SearchSettings, given: Collection[str]) -> SearchSettings:
    return _unless_given(settings, given, {"iterations": 1, "samples": LEAST_SAMPLES})


def _unless_given(
    settings: SearchSettings, given: Collection[str], sizes: Mapping[str, int]
) -> SearchSettings:
    return _sized(settings, **{name: each for name, each in sizes.items() if name not in given})


def _reductions(
    settings: SearchSettings, given: Collection[str], costs: CostModel
) -> list[SearchSettings]:
    """The settings, followed by ever smaller ones, in the order of reduction."""
    levels = _with_fewer_baselines(settings, given, costs)
    for name, least in (("final_seeds", LEAST_FINAL_SEEDS), ("finalists", LEAST_FINALISTS)):
        while name not in given and settings.finalists and getattr(levels[-1], name) > least:
            levels.append(_sized(levels[-1], **{name: getattr(levels[-1], name) - 1}))
    return levels


def _with_fewer_baselines(
    settings: SearchSettings, given: Collection[str], costs: CostModel
) -> list[SearchSettings]:
    """The settings, followed by ones with fewer baselines, down to the cheapest."""
    levels = [settings]
    if settings.trains_baselines and not {"baselines", "baseline_seeds"} & set(given):
        seeds = range(settings.seeds_of_baselines - 1, LEAST_BASELINE_SEEDS - 1, -1)
        levels += [_sized(settings, baseline_seeds=number) for number in seeds]
        levels.append(_sized(settings, baselines=False))
    cheapest = min(
        range(len(levels)), key=lambda place: costs.env_steps(_smallest(levels[place], given))
    )
    return levels[: cheapest + 1]


def _largest(
    settings: SearchSettings, given: Collection[str], costs: CostModel, shape: Shape
) -> SearchSettings | None:
    """The largest search: the shape's samples first, then its generations, then up to sixteen
    samples, then more generations. None if nothing fits."""
    search = _smallest(settings, given)
    if not costs.fits(search):
        return None

    def grown(name: str, high: int) -> SearchSettings:
        low = getattr(search, name)
        if name in given or low >= high:
            return search
        return _sized(
            search,
            **{name: _most(lambda value: costs.fits(_sized(search, **{name: value})), low, high)},
        )

    search = grown("samples", shape.samples)
    if "samples" in given:
        return grown("iterations", MOST_ITERATIONS)
    if search.samples == shape.samples:
        search = grown("iterations", shape.enough)
        search = grown("samples", MOST_SAMPLES)
    return grown("iterations", MOST_ITERATIONS) if search.samples == MOST_SAMPLES else search


def _most(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number up to `high` that fits, by bisection. `low` fits."""
    above = low + 1
    while above <= high and fits(above):
        low, above = above, 2 * above
    above = min(above, high + 1)
    while above - low > 1:
        middle = (low + above) // 2
        low, above = (middle, above) if fits(middle) else (low, middle)
    return low


def _shorter(settings: SearchSettings, given: Collection[str], costs: CostModel) -> SearchSettings:
    """The settings with trainings as short as the smallest search needs."""
    if "env_steps" in given or costs.fits(_smallest(settings, given)):
        return settings
    whole, update = settings.env_steps, settings.num_envs * settings.horizon

    def with_updates(updates: int) -> SearchSettings:
        return _sized(settings, env_steps=min(whole, updates * update))

    least = math.ceil(whole / (LEAST_PART_OF_ENV_STEPS * update))
    if costs.fits(_smallest(with_updates(least), given)):
        least = _most(
            lambda updates: costs.fits(_smallest(with_updates(updates), given)),
            least,
            settings.updates,
        )
    return with_updates(least)


def _sentence(asked: SearchSettings, found: SearchSettings, costs: CostModel) -> str:
    """The plan as a sentence, such as `"the budget of 5M gives 1 generation of 8, 3 finalists from
    5 seeds, …"`."""
    sizes = [f"{wording.plural(found.iterations, 'generation')} of {found.samples}"]
    if found.finalists:
        sizes.append(
            f"{wording.plural(found.finalists, 'finalist')} from"
            f" {wording.plural(found.final_seeds, 'seed')}"
        )
    if found.trains_baselines:
        sizes.append(f"baselines from {wording.plural(found.seeds_of_baselines, 'seed')}")
    elif asked.trains_baselines:
        sizes.append("no baselines")
    if found.randomise:
        sizes.append(wording.plural(found.randomise, "distribution") + " of parameters")
    sizes.append(f"{found.env_steps:,} env steps a training")
    if costs.budget.seconds is not None:
        cost = f"about {wording.duration(costs.seconds(found))}"
    else:
        cost = f"at most about {wording.count(costs.env_steps(found))} env steps"
    reduced = [
        f"{name.replace('_', ' ')} {getattr(asked, name):,} → {getattr(found, name):,}"
        for name in ("final_seeds", "finalists", "env_steps")
        if getattr(asked, name) != getattr(found, name)
    ]
    if not found.baselines and asked.baselines:
        reduced.insert(0, "no baselines")
    elif found.baseline_seeds != asked.baseline_seeds:
        reduced.insert(0, f"baseline seeds {asked.seeds_of_baselines} → {found.seeds_of_baselines}")
    return f"the budget of {costs.budget.text} gives {', '.join(sizes)}: {cost}" + (
        f"; reduced to fit: {', '.join(reduced)}" if reduced else ""
    )
