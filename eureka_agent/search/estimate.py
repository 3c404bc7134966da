"""Estimate of a search before it starts: its trainings, wall time, requests and cost.

A worker describes the task and trains for some seconds, once (`calibration.py`). The first prompt
of each role is made and counted (`request_counts.py`), and the search is played through at the
measured pace (`wall_time.py`).
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.estimates import Estimate, RoleEstimate, SearchPlan, sum_of_money
from eureka_agent.fleet.devices import Hardware, choose_hardware
from eureka_agent.journal.entries import Observer
from eureka_agent.records import TaskDescription, Verdict, WrittenFitness
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.budget import parse_budget
from eureka_agent.search.calibration import Calibration, OpenedTask
from eureka_agent.search.capacity import plan_capacity
from eureka_agent.search.card import card_for
from eureka_agent.search.models import Models, models_of
from eureka_agent.search.pace import NotMeasuredError
from eureka_agent.search.planning import MissingBaselines, plan_within
from eureka_agent.search.preparation import check_randomise, checked, effective_settings
from eureka_agent.search.request_counts import count_requests
from eureka_agent.search.time_limit import time_limit
from eureka_agent.search.unmeasured import with_defaults
from eureka_agent.search.wall_time import REPLY_SECONDS, SearchTimes
from eureka_agent.search.written_fitness import Acceptance
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts

__all__ = ["Estimate", "Estimator", "SearchPlan"]

_SETTINGS_OF_MODELS = (
    "model",
    "base_url",
    "api",
    "temperature",
    "reply_tokens",
    "request_timeout",
    "outage",
    "llm_batch",
    "reviewer",
    "analyst",
    "judge",
    "fitness",
    "price",
    "max_cost",
    "max_tokens",
)


class Estimator:
    """Estimates searches, several of them in the time of one: what it has learned about tasks,
    walls and models it keeps."""

    def __init__(
        self, observer: Observer = lambda entry: None, most_seconds: float = math.inf
    ) -> None:
        """`observer` gets a notice before anything that takes seconds. After `most_seconds` no
        further pace is measured."""
        self._stack = AsyncExitStack()
        self._turn = asyncio.Lock()
        self._calibration = Calibration(observer, self._scratch_folder, most_seconds)
        self._models: dict[str, Models | None] = {}
        self._walls: dict[str, Wall] = {}
        self._scratch: Path | None = None

    async def __aenter__(self) -> Estimator:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def estimate(self, values: Mapping[str, Any]) -> Estimate:
        """The estimate of a search with these settings by name, as `session.start` takes them.

        Raises the EurekaError that the search would raise before its first training.
        """
        return (await self.plan(values)).estimate

    async def plan(self, values: Mapping[str, Any], *, timed: bool = True) -> SearchPlan:
        """The estimate with its parts; unless `timed`, and where no time is left to measure, it has
        no wall time, and a budget in wall time chooses nothing. Raises the errors of `estimate`."""
        async with self._turn:  # two measurements at once would slow each other
            try:
                return await self._plan(with_defaults(values), timed)
            except NotMeasuredError:
                return await self._plan(with_defaults(values), False)

    async def check(self, values: Mapping[str, Any]) -> None:
        """Raise the errors of `estimate` that need no measurement."""
        async with self._turn:
            await self._opened(with_defaults(values))

    async def _opened(
        self, values: Mapping[str, Any]
    ) -> tuple[SearchSettings, Models | None, Wall, OpenedTask, Hardware, SearchSettings]:
        """The settings as they were given, what they name, and the settings of the run."""
        asked = checked(values, None, _nobody)
        models = self._models_of(asked)
        wall = self._wall(asked.sandbox)
        task = await self._calibration.opened(asked, wall)
        hardware = choose_hardware(asked.device, task.opened)
        settings = effective_settings(values, task.opened.description, hardware.kind)
        check_randomise(settings, task.opened.description, hardware)
        return asked, models, wall, task, hardware, settings

    async def _plan(self, values: Mapping[str, Any], timed: bool) -> SearchPlan:
        asked, models, wall, task, hardware, settings = await self._opened(values)
        description = task.opened.description
        notes: list[str] = []
        live = None if models is None or models.replayed else models
        analyses = live is not None and live.analyst is not None
        baselines = _baselines(settings, description, hardware)
        times: SearchTimes | None = None

        async def measured(sized: SearchSettings) -> SearchTimes:
            nonlocal times
            pace = await self._calibration.pace(sized, task, hardware, wall)
            before, designs = task.seconds, live is not None
            if asked.fitness != "task":  # the task is opened with its own metric, then without
                before += task.seconds + (REPLY_SECONDS if designs else 0.0)
            times = SearchTimes(
                description, pace, hardware.places, baselines, before, designs, analyses
            )
            return times

        budget = None if asked.budget is None else parse_budget(asked.budget)
        if budget is not None and (timed or budget.seconds is None):
            plan = await plan_within(budget, settings, values, baselines, measured)
            settings = plan.settings
            notes.append(plan.text)
        _, origin = card_for(description, settings, hardware.kind)
        notes += [origin] if origin else []
        seconds = busy = None
        if timed:
            times = times or await measured(settings)
            settings, seconds = _within_time(settings, times, notes)
            busy = replace(times, designs=False, analyses=False).seconds(settings)
        counts = TrainingCounts.of(settings, baselines=baselines(settings))
        roles = [] if live is None else await count_requests(live, settings, description)
        estimate = _sum(settings, counts, seconds, roles)
        workers = plan_capacity(settings, hardware.places).workers
        notes += _limits(settings, estimate)
        notes += _assumed(models, roles, batched=settings.llm_batch)
        if times is not None:
            notes.append(f"the pace of trainings was measured on {times.pace.measured}")
            if settings.cluster != "off":
                notes.append("it is that of this machine alone, without the cluster")
        devices = hardware.sentence(workers)
        return SearchPlan(
            estimate, settings, description, counts, roles, devices, busy, tuple(notes)
        )

    # ── what is known once ────────────────────────────────────────────────────────────────────────

    def _models_of(self, asked: SearchSettings) -> Models | None:
        key = repr([getattr(asked, name) for name in _SETTINGS_OF_MODELS])
        if key not in self._models:
            models = self._models[key] = models_of(asked, lambda reason: None)
            if models is not None:
                self._stack.push_async_callback(models.close)
        return self._models[key]

    def _wall(self, name: str) -> Wall:
        if name not in self._walls:
            self._walls[name] = choose_wall(name)
        return self._walls[name]

    def _scratch_folder(self) -> Path:
        """A temporary folder that ends with the estimator."""
        if self._scratch is None:
            self._scratch = self._stack.enter_context(driver_scratch())
        return self._scratch


def _within_time(
    settings: SearchSettings, times: SearchTimes, notes: list[str]
) -> tuple[SearchSettings, float]:
    """The settings with as many generations as the time limit allows, and the seconds."""

    def with_generations(number: int) -> SearchSettings:
        return settings.model_copy(update={"iterations": number})

    seconds, limit = times.seconds(settings), time_limit(settings)
    if limit is None or seconds <= limit.seconds:
        return settings, seconds
    possible = _most_within(
        lambda number: times.seconds(with_generations(number)) <= limit.seconds, settings.iterations
    )
    if possible < settings.iterations:
        generations = wording.plural(settings.iterations, "generation")
        notes.append(f"about {possible:,} of {generations} fit into {limit.text}")
    else:
        notes.append(f"one generation takes longer than {limit.text}")
    settings = with_generations(possible)
    return settings, times.seconds(settings)


async def _nobody(fitness: WrittenFitness, verdict: Verdict, folder: Path) -> Acceptance | None:
    """Accept no fitness: an estimate has none written."""
    return None


def _baselines(
    settings: SearchSettings, description: TaskDescription, hardware: Hardware
) -> Callable[[SearchSettings], int]:
    """Counts trainings of baselines that no earlier run has left in the cache."""
    if settings.fitness != "task":  # a new metric has the sparse reward alone
        return lambda sized: sized.seeds_of_baselines if sized.trains_baselines else 0
    missing = MissingBaselines(description, hardware)
    return lambda sized: missing(sized) if sized.trains_baselines else 0


def _most_within(fits: Callable[[int], bool], most: int) -> int:
    """The largest number below `most` that fits, at least 1."""
    return max(1, bisect_left(range(1, most), True, key=lambda number: not fits(number)))


def _sum(
    settings: SearchSettings,
    counts: TrainingCounts,
    seconds: float | None,
    roles: Sequence[RoleEstimate],
) -> Estimate:
    """The estimate of the whole search."""
    trainings = counts.likely(settings.iterations)
    return Estimate(
        trainings=trainings,
        env_steps=trainings * settings.steps_of_a_training,
        seconds=seconds,
        requests=sum(each.requests for each in roles),
        prompt_tokens=sum(each.prompt_tokens for each in roles),
        reply_tokens=sum(each.reply_tokens for each in roles),
        money=sum_of_money(each.money for each in roles),
    )


def _limits(settings: SearchSettings, estimate: Estimate) -> list[str]:
    """Sentences on limits that the estimate exceeds."""
    found = []
    if settings.max_cost is not None and (estimate.money or 0) > settings.max_cost:
        found.append(f"--max-cost {settings.max_cost} ends the designing before all proposals")
    tokens = estimate.prompt_tokens + estimate.reply_tokens
    if settings.max_tokens is not None and tokens > settings.max_tokens:
        found.append(f"--max-tokens {settings.max_tokens} ends the designing before all proposals")
    return found


def _assumed(models: Models | None, roles: Sequence[RoleEstimate], *, batched: bool) -> list[str]:
    """Sentences on what is assumed of models."""
    if models is None:
        return []
    if models.replayed:
        return [f"replies are played back from {models.replayed}: no model is asked"]
    found = [
        f"a reply is assumed to take {REPLY_SECONDS:g} s and to be as long as recorded ones; hidden"
        " reasoning and revisions come on top"
    ]
    if batched:
        found.append("replies in batches may take hours instead: the wall time does not hold them")
    unpriced = dict.fromkeys(each.model for each in roles if each.money is None)
    if unpriced:
        found.append(
            f"the price of {' and '.join(unpriced)} is not known: --price <provider>/<model>="
            "<dollars for a million tokens of prompts>,<of replies> gives it"
        )
    return found
