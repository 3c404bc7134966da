"""Estimate of a batch before it starts, with every search that could not start."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from eureka_agent import wording
from eureka_agent.archive.cache import baseline_context
from eureka_agent.archive.files import FILE_NAME
from eureka_agent.batch.faults import BatchFileError, Fault
from eureka_agent.batch.file import BatchFile, BatchSettings
from eureka_agent.batch.limits import TimeLeft
from eureka_agent.batch.machine_trouble import trouble_in
from eureka_agent.batch.matrix import OF_THE_BATCH, PlannedSearch
from eureka_agent.errors import EurekaError
from eureka_agent.estimates import Estimate, SearchPlan, sum_of_money
from eureka_agent.journal.entries import BaseEntry, Notice, Observer
from eureka_agent.search.estimate import Estimator

ResultT = TypeVar("ResultT")
MOST_SECONDS = 120.0
"""Time after which a plan measures no further pace; what it has measured, the next one knows."""
_MOST_NAMES = 3


@dataclass(frozen=True)
class BatchPlan:
    """The searches of a batch with their estimates. Baselines that several share are those of the
    first."""

    searches: tuple[tuple[PlannedSearch, SearchPlan], ...]
    total: Estimate
    """Wall time is that of searches which share the machine."""
    notes: tuple[str, ...]
    """Sentences on limits, and on what the estimates assume."""


def not_begun(searches: Iterable[PlannedSearch], folder: Path) -> list[PlannedSearch]:
    """The searches that have no run in the folder of their batch."""
    return [each for each in searches if not (folder / each.name / FILE_NAME).is_file()]


async def plan_batch(
    file: BatchFile, searches: Sequence[PlannedSearch], observer: Observer, *, timed: bool = True
) -> BatchPlan:
    """Estimate searches, without wall time unless `timed`. `observer` gets a notice before
    anything that takes seconds. After `MOST_SECONDS` no further pace is measured.

    Raises BatchFileError with every search that could not start, for want of a key, an environment
    that fails its check, or another reason.
    """
    tasks = list(dict.fromkeys(_task(search.values) for search in searches))
    number = 0

    def numbered(entry: BaseEntry) -> None:
        if isinstance(entry, Notice):
            text = f"{entry.text} (task {number} of {len(tasks)})"
            observer(entry.model_copy(update={"text": text}))

    async with Estimator(numbered, MOST_SECONDS) as estimator:

        def check(values: Mapping[str, Any]) -> Awaitable[None]:
            nonlocal number
            number = tasks.index(_task(values)) + 1
            return estimator.check(values)

        def plan(values: Mapping[str, Any]) -> Awaitable[SearchPlan]:
            nonlocal number
            number = tasks.index(_task(values)) + 1
            return estimator.plan(values, timed=timed)

        await _each(file, searches, check)  # all mistakes are told before the first measurement
        plans = await _each(file, searches, plan)
    found = _without_shared_baselines(plans)
    total = _total(found, file.settings.at_once)
    missing = sum(plan.estimate.seconds is None for plan in plans) if timed else 0
    notes = [
        *([_unmeasured(missing, len(plans))] if missing else []),
        *_limits(file.settings, total),
        *dict.fromkeys(note for each in found for note in each.notes),
    ]
    return BatchPlan(tuple(zip(searches, found, strict=True)), total, tuple(notes))


def _task(values: Mapping[str, Any]) -> tuple[Any, Any]:
    return values.get("env"), values.get("task")


def _unmeasured(missing: int, searches: int) -> str:
    return (
        f"the wall time leaves out {missing} of {wording.plural(searches, 'search', 'searches')},"
        f" whose pace was not measured within {wording.duration(MOST_SECONDS)}; the same command"
        " measures more"
    )


async def _each(
    file: BatchFile,
    searches: Iterable[PlannedSearch],
    ask: Callable[[Mapping[str, Any]], Awaitable[ResultT]],
) -> list[ResultT]:
    """The answer for each search's settings. Raises BatchFileError with the searches for which
    `ask` raises EurekaError, and the machine's trouble, for which the file is not to blame."""
    shared = {name: getattr(file.settings, name) for name in OF_THE_BATCH}
    found: list[ResultT] = []
    faults: dict[Fault, list[str]] = {}
    for search in searches:
        try:
            found.append(await ask({**search.values, **shared}))
        except EurekaError as error:
            if trouble_in(error) is not None:
                raise
            faults.setdefault(_fault(file, search, error), []).append(search.name)
    if faults:
        named = [
            replace(fault, message=f"{_names(names)}: {fault.message}")
            for fault, names in faults.items()
        ]
        raise BatchFileError(str(file.path), named)
    return found


def most_money(file: BatchFile, total: Estimate) -> Decimal:
    """US dollars that the batch is expected to spend at most, as far as prices are known."""
    money = total.money or Decimal(0)
    return money if file.settings.max_cost is None else min(money, file.settings.max_cost)


def _fault(file: BatchFile, search: PlannedSearch, error: EurekaError) -> Fault:
    """The error at the setting that it is about: one whose flag or value its text has."""
    text = f"{error.message} {error.hint or ''}"
    flags = [flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]*)", error.message)]
    named = [name for name in search.places if name in flags]
    named += [
        name
        for name in search.places
        if any(
            isinstance(value, str) and len(value) > 1 and value in text
            for value in _members(search.values.get(name))
        )
    ]
    place = search.places[named[0]] if named else search.place
    return file.fault(place, error.message, error.hint or "")


def _members(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _without_shared_baselines(plans: Sequence[SearchPlan]) -> list[SearchPlan]:
    """The plans, each without the baselines that an earlier one trains."""
    trained: dict[str, int] = {}
    found = []
    for plan in plans:
        key = json.dumps(baseline_context(plan.description, plan.settings), sort_keys=True)
        own = max(0, plan.counts.baselines - trained.get(key, 0))
        trained[key] = max(plan.counts.baselines, trained.get(key, 0))
        fewer = plan.counts.baselines - own
        before = plan.estimate
        trainings = before.trainings - fewer
        share = trainings / before.trainings
        estimate = replace(
            before,
            trainings=trainings,
            env_steps=before.env_steps - fewer * plan.settings.steps_of_a_training,
            seconds=None if before.seconds is None else before.seconds * share,
        )
        busy = None if plan.busy_seconds is None else plan.busy_seconds * share
        counts = replace(plan.counts, baselines=own)
        found.append(replace(plan, estimate=estimate, busy_seconds=busy, counts=counts))
    return found


def _total(plans: Sequence[SearchPlan], at_once: int) -> Estimate:
    """The sums. Searches under way at a time wait for models together, but train in turns."""
    estimates = [plan.estimate for plan in plans]
    seconds = [each.seconds for each in estimates if each.seconds is not None]
    busy = [plan.busy_seconds for plan in plans if plan.busy_seconds is not None]
    return Estimate(
        trainings=sum(each.trainings for each in estimates),
        env_steps=sum(each.env_steps for each in estimates),
        seconds=max(sum(busy), sum(seconds) / at_once, *seconds) if seconds else None,
        requests=sum(each.requests for each in estimates),
        prompt_tokens=sum(each.prompt_tokens for each in estimates),
        reply_tokens=sum(each.reply_tokens for each in estimates),
        money=sum_of_money(each.money for each in estimates),
    )


def _limits(settings: BatchSettings, total: Estimate) -> list[str]:
    """Sentences on limits of the batch that its estimate exceeds."""
    found = []
    if settings.max_cost is not None and (total.money or 0) > settings.max_cost:
        found.append(f"max_cost ends the designing at ${settings.max_cost}")
    tokens = total.prompt_tokens + total.reply_tokens
    if settings.max_tokens is not None and tokens > settings.max_tokens:
        found.append(f"max_tokens ends the designing at {settings.max_tokens:,} tokens")
    if settings.env_steps is not None and total.env_steps > settings.env_steps:
        found.append(
            f"max_env_steps keeps generations from beginning: {wording.count(settings.env_steps)}"
            f" of {wording.count(total.env_steps)}"
        )
    left = TimeLeft(settings).limit()
    if left is not None and total.seconds is not None and total.seconds > left.seconds:
        found.append(f"it does not fit into {left.text}; the same command goes on")
    return found
