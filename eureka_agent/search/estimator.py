"""Estimate of a search before it starts: its trainings, wall time, requests and cost."""

from __future__ import annotations

import functools
import json
import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.archive.cache import RecordCache, baseline_context
from eureka_agent.archive.run_folder import runs_folder
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.base_record import Record
from eureka_agent.boundary.events import Opened
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import opening
from eureka_agent.environment_files import fingerprint_of, folder_files
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.devices import Hardware, choose_hardware
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.batches import LIVE_ROLES
from eureka_agent.llm.budget import CHARACTERS_PER_TOKEN, IMAGE_TOKENS
from eureka_agent.llm.interface import LanguageModel, Role
from eureka_agent.records import Cost, Operator, TaskDescription
from eureka_agent.report.plan import RoleEstimate, SearchEstimate, SearchPlan, asked_in_all
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.budget import parse_budget, time_limit
from eureka_agent.search.budget_plan import missing_baselines, plan_within
from eureka_agent.search.card import card_for
from eureka_agent.search.clock import (
    CACHE,
    REPLY_SECONDS,
    USUAL_TURNS,
    NotMeasuredError,
    SearchClock,
    pace_of,
    plan_capacity,
    this_machine,
)
from eureka_agent.search.labelling import check_labels
from eureka_agent.search.models import Models, models_of
from eureka_agent.search.preparation import (
    check_randomise,
    checked,
    effective_settings,
    measure_task,
)
from eureka_agent.search.seeing import COMPARISONS
from eureka_agent.search.written_fitness import with_defaults
from eureka_agent.settings import SearchSettings, strategy_name
from eureka_agent.simulation.catalogue import GYMNASIUM_PREFIX, find_folder
from eureka_agent.training_counts import TrainingCounts


class OpenedTask(Record):
    """A worker's description of a task, with its measurements."""

    opened: Opened
    seconds: float
    """Wall time until the worker had it."""


_Asked = tuple[SearchSettings, Models | None, Wall, OpenedTask, Hardware]
"""A search that could be started: settings of its run, and what they name."""


class Estimator:
    """Estimates searches that share a machine, and the baselines of the ones before."""

    def __init__(
        self, observer: Observer = lambda entry: None, most_seconds: float = math.inf
    ) -> None:
        """No pace is measured later than `most_seconds` after the first one."""
        self._observer, self._most_seconds = observer, most_seconds
        self._until: float | None = None
        self._stack = AsyncExitStack()
        self._cache = RecordCache(runs_folder(), CACHE)
        self._wall = functools.cache(choose_wall)
        self._failed: dict[tuple[str, str | None, str], EurekaError] = {}
        """Errors of tasks that could not be opened."""
        self._trained = Counter[str]()
        """Baselines of the plans so far, by what they depend on."""

    async def __aenter__(self) -> Estimator:
        self._scratch: Path = self._stack.enter_context(driver_scratch())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def plan(self, values: Mapping[str, Any], *, timed: bool = True) -> SearchPlan:
        """The estimate of a search with these settings, as `session.start` takes them; without wall
        time unless `timed`, and where no time is left to measure. Raises the errors of that
        search."""
        values = with_defaults(values)
        asked = await self._asked(values)
        try:
            return await self._plan(values, asked, timed)
        except NotMeasuredError:
            return await self._plan(values, asked, False)

    async def check(self, values: Mapping[str, Any]) -> None:
        """Raise the errors of `plan` that need no measurement."""
        await self._asked(with_defaults(values))

    async def _asked(self, values: Mapping[str, Any]) -> _Asked:
        asked = checked(values, None, _nobody)
        models = models_of(asked, lambda reason: None)
        if models is not None:
            self._stack.push_async_callback(models.close)
        wall = self._wall(asked.sandbox)
        task = await self._task(asked, wall)
        hardware = choose_hardware(asked.device, task.opened)
        settings = effective_settings(values, task.opened.description, hardware.kind)
        check_randomise(settings, task.opened.description, hardware)
        check_labels(asked, task.opened.description)
        return settings, models, wall, task, hardware

    async def _task(self, asked: SearchSettings, wall: Wall) -> OpenedTask:
        """The task of a search, from the cache or a worker."""
        key: dict[str, Any] = {"environment": asked.env, "task": asked.task, "wall": wall.name}
        key |= {"files": "", **this_machine()}
        if not asked.env.startswith(GYMNASIUM_PREFIX):
            with suppress(OSError):  # the worker says what cannot be read
                key["files"] = fingerprint_of(folder_files(find_folder(asked.env)))
        if (known := self._cache.find(key, OpenedTask)) is not None:
            return known
        place = asked.env, asked.task, wall.name
        if place in self._failed:
            raise self._failed[place]
        task = "" if asked.task is None else f", task {asked.task!r}"
        self._observer(Notice(text=f"opening {asked.env!r}{task}"))
        began, problem = time.monotonic(), Problem(asked.env, asked.task)
        runner = DryRunner(wall, problem, self._scratch / "dry-runs", asked.dry_run_timeout)
        try:
            await runner.start()
            seconds = time.monotonic() - began
            await measure_task(runner, self._observer)
            opened = runner.opened.model_copy(update={"description": runner.description})
        except EurekaError as error:
            self._failed[place] = error
            raise
        finally:
            await runner.close()
        found = OpenedTask(opened=opened, seconds=seconds)
        self._cache.put(key, found)
        return found

    async def _plan(self, values: Mapping[str, Any], asked: _Asked, timed: bool) -> SearchPlan:
        settings, models, wall, task, hardware = asked
        description = task.opened.description
        live = None if models is None or models.replayed else models
        missing = missing_baselines(description, hardware, own_metric=settings.fitness == "task")

        def context(sized: SearchSettings) -> str:
            return json.dumps(baseline_context(description, sized), sort_keys=True)

        def baselines(sized: SearchSettings) -> int:
            return max(0, missing(sized) - self._trained[context(sized)])

        clock: SearchClock | None = None

        async def measured(sized: SearchSettings) -> SearchClock:
            nonlocal clock
            self._until = self._until or time.monotonic() + self._most_seconds
            pace = await pace_of(
                sized, description, hardware, wall, self._scratch, self._observer, until=self._until
            )
            before = task.seconds
            if settings.fitness != "task":  # the task is opened with its own metric, then without
                before += task.seconds + (REPLY_SECONDS if live else 0.0)
            clock = SearchClock(description, pace, hardware.places, baselines, before, live)
            return clock

        notes: list[str] = []
        if settings.budget and (timed or parse_budget(settings.budget).seconds is None):
            settings, text = await plan_within(settings, values, baselines, measured)
            notes.append(text)
        _, origin = card_for(description, settings, hardware.kind)
        notes += filter(None, [origin])
        seconds = busy = None
        if timed:
            clock = clock or await measured(settings)
            settings = _within_time(settings, clock, notes)
            seconds, busy = (
                each.seconds(settings) for each in (clock, replace(clock, models=None))
            )
        counts = TrainingCounts.of(settings, baselines=baselines(settings))
        self._trained[context(settings)] += counts.baselines
        trainings = counts.likely(settings.iterations)
        roles: list[RoleEstimate] = []
        if live is not None and settings.iterations:
            roles = count_requests(live, settings, description)
        estimate = SearchEstimate(
            trainings=trainings,
            env_steps=trainings * settings.steps_of_a_training,
            seconds=seconds,
            **asked_in_all(roles),
        )
        notes += _notes_on_models(models, settings, estimate, roles)
        if clock is not None:
            notes.append(f"the pace of trainings was measured on {clock.pace.measured}")
            if settings.cluster != "off":
                notes.append("it is that of this machine alone, without the cluster")
        devices = hardware.sentence(plan_capacity(settings, hardware.places).workers)
        return SearchPlan(
            estimate, settings, description, counts, roles, devices, busy, tuple(notes)
        )


async def _nobody(*shown: object) -> None:
    """Accept no fitness: an estimate has none written."""


def _within_time(settings: SearchSettings, clock: SearchClock, notes: list[str]) -> SearchSettings:
    """The settings with as many generations as the time limit allows, at least one."""
    limit, most = time_limit(settings), settings.iterations
    if limit is None or clock.seconds(settings) <= limit.seconds:
        return settings

    def sized(generations: int) -> SearchSettings:
        return settings.model_copy(update={"iterations": generations})

    fitting = bisect_left(
        range(1, most), True, key=lambda each: clock.seconds(sized(each)) > limit.seconds
    )
    generations = wording.plural(most, "generation")
    note = f"about {fitting:,} of {generations} fit into {limit.text}"
    notes.append(note if fitting else f"one generation takes longer than {limit.text}")
    return sized(fitting or min(1, most))


def _notes_on_models(
    models: Models | None,
    settings: SearchSettings,
    estimate: SearchEstimate,
    roles: Sequence[RoleEstimate],
) -> list[str]:
    """Sentences on limits that the estimate exceeds, and on what is assumed."""
    if models is None:
        return []
    if models.replayed:
        return [f"replies are played back from {models.replayed}: no model is asked"]
    found = []
    if settings.max_cost is not None and (estimate.money or 0) > settings.max_cost:
        found.append(f"--max-cost {settings.max_cost} ends the designing before all proposals")
    tokens = estimate.prompt_tokens + estimate.reply_tokens
    if settings.max_tokens is not None and tokens > settings.max_tokens:
        found.append(f"--max-tokens {settings.max_tokens} ends the designing before all proposals")
    found.append(
        f"a reply is assumed to take {REPLY_SECONDS:g} s and to be as long as recorded ones; hidden"
        " reasoning and revisions come on top"
    )
    if settings.llm_batch:
        found.append("replies in batches may take hours instead: the wall time does not hold them")
    unpriced = dict.fromkeys(each.model for each in roles if each.money is None)
    if unpriced:
        found.append(
            f"the price of {' and '.join(unpriced)} is not known: --price <provider>/<model>="
            "<dollars for a million tokens of prompts>,<of replies> gives it"
        )
    return found


# ── requests to models ────────────────────────────────────────────────────────────────────────────

LATER_TOKENS = 3250
"""Tokens of parents, curves and failures in later prompts (benchmarks/LOG.md)."""
ANSWER_TOKENS = 900
"""Tokens of tools and their answers in a later prompt, on average over its turns."""
DOUBTED_SHARE = 0.125
"""Part of the proposals that the critic doubts: two of sixteen (docs/field-trial.md)."""
ROLE_TOKENS = {
    Role.DESIGNER: (570, 0),  # 2,300 characters in 100 replies of recorded searches
    Role.REVIEWER: (250, 375),  # three sentences in JSON on a reward
    Role.ANALYST: (425, 1000),  # the 250 words that it is asked for, on a reward and a diagnosis
    Role.JUDGE: (50, 2 * IMAGE_TOKENS),
    Role.METRIC: (800, 0),  # a fitness is a reward with a page of words
    Role.LABELLER: (80, 600),  # 20 captions, a line for each
    Role.RANDOMISER: (800, 375),  # four distributions of six parameters in JSON, for a reward
}
"""Tokens of a role's usual reply, without hidden reasoning, which models count too; and of its
prompt besides those of a first design request."""


def count_requests(
    models: Models, settings: SearchSettings, description: TaskDescription
) -> list[RoleEstimate]:
    """Requests by role and model, without revisions; the first design request is counted."""
    request = DesignRequest(
        description=description,
        sentence=settings.sentence or description.sentence,
        operator=Operator.FRESH,
        parents=(),
        failures=(),
        seed=settings.seed,
        settings=settings,
    )
    tokens = sum(len(each.content) for each in opening(request)) // CHARACTERS_PER_TOKEN
    found = []
    for role, model, requests, more in _requests(models, settings):
        usual, beside = ROLE_TOKENS[role]
        reply = requests * min(usual, models.reply_tokens or usual)
        prompt = requests * (tokens + beside + more)
        batched = settings.llm_batch and role not in LIVE_ROLES
        cost = Cost(prompt_tokens=prompt, completion_tokens=reply, batched=batched)
        price = models.prices.get(model.name)
        money = None if price is None else price.money(cost)
        if requests:
            found.append(RoleEstimate(role.value, model.name, requests, prompt, reply, money))
    return found


def _requests(
    models: Models, settings: SearchSettings
) -> Iterator[tuple[Role, LanguageModel, int, int]]:
    """Role, model, number of requests, and further tokens of each prompt."""
    first, later = settings.samples, settings.samples * (settings.iterations - 1)
    turns, answers = (USUAL_TURNS, ANSWER_TOKENS) if models.tools else (1, 0)
    designs = first + turns * later * settings.drafts_of_each
    evolves = strategy_name(settings) != "best-of-n"
    more = (LATER_TOKENS + answers) * turns * later * settings.drafts_of_each
    grown = more // designs if evolves else 0
    if settings.fitness == "written":
        yield Role.METRIC, models.designers[0], 1, 0
    for place, designer in enumerate(models.designers):
        requests = (designs + place) // len(models.designers)
        yield Role.DESIGNER, designer, requests, grown
    if models.reviewer is not None:
        share = 1.0 if models.review_all else DOUBTED_SHARE
        yield Role.REVIEWER, models.reviewer, math.ceil(share * (first + later)), 0
    if models.analyst is not None and evolves:
        # the parents of a generation: the best, or every second choice an island's best
        parents = max(1, settings.samples // 2) if settings.strategy == "islands" else 1
        pictures = 2 * IMAGE_TOKENS if settings.analyst_sees else 0
        yield Role.ANALYST, models.analyst, (settings.iterations - 1) * parents, pictures
    if models.judge is not None:  # one request asks if it sees, and one for its sub-goals
        yield Role.JUDGE, models.judge, COMPARISONS * (first + later) + 2, 0
    if settings.rewards == "labels":
        yield Role.LABELLER, models.designers[0], settings.label_requests, 0
    if settings.randomise:
        yield Role.RANDOMISER, models.designers[0], 1, 0
