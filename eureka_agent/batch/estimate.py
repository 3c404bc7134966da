"""Estimate of a batch before it starts, for `--plan`, with every search that could not start."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from eureka_agent.archive.files import FILE_NAME
from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.batch.file import BatchFile, BatchSettings, FileFault
from eureka_agent.batch.limits import TimeLeft, trouble_in
from eureka_agent.batch.matrix import OF_THE_BATCH, PlannedSearch
from eureka_agent.errors import EurekaError
from eureka_agent.journal.entries import Observer
from eureka_agent.report.blocks import Grid
from eureka_agent.report.plan import (
    SearchEstimate,
    SearchPlan,
    asked_in_all,
    estimate_to_json,
    facts_of,
    render_notes,
)
from eureka_agent.report.terminal import facts_grid, render_block
from eureka_agent.search.estimator import Estimator
from eureka_agent.wording import count, duration, plural, some_of

MOST_SECONDS = 120.0
"""Time after which a plan measures no further pace; what it has measured, the next one knows."""
_MOST_NAMES = 3


@dataclass(frozen=True)
class BatchPlan:
    """The searches of a batch with their estimates. Baselines that several share are those of the
    first."""

    searches: tuple[tuple[PlannedSearch, SearchPlan], ...]
    total: SearchEstimate
    """Wall time is that of searches which share the machine."""
    notes: tuple[str, ...]


def not_begun(searches: Iterable[PlannedSearch], folder: Path) -> list[PlannedSearch]:
    """The searches that have no run in the folder of their batch."""
    return [each for each in searches if not (folder / each.name / FILE_NAME).is_file()]


def most_money(file: BatchFile, total: SearchEstimate) -> Decimal:
    """US dollars that the batch is expected to spend at most, as far as prices are known."""
    money = total.money or Decimal(0)
    return money if file.settings.max_cost is None else min(money, file.settings.max_cost)


async def plan_batch(
    file: BatchFile, searches: Sequence[PlannedSearch], observer: Observer, *, timed: bool = True
) -> BatchPlan:
    """Estimate searches, without wall time unless `timed`. `observer` gets a notice before
    anything that takes seconds. After `MOST_SECONDS` no further pace is measured.

    Raises BatchFileError with every search that could not start, for want of a key, an environment
    that fails its check, or another reason; and the machine's trouble, for which the file is not to
    blame.
    """
    shared = {name: getattr(file.settings, name) for name in OF_THE_BATCH}

    async def each(ask: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> list[Any]:
        found: list[Any] = []
        faults: dict[FileFault, list[str]] = {}
        for search in searches:
            try:
                found.append(await ask({**search.values, **shared}))
            except EurekaError as error:
                if trouble_in(error) is not None:
                    raise
                faults.setdefault(_fault(search, error), []).append(search.name)
        if faults:
            named = [
                replace(fault, message=f"{some_of(names, _MOST_NAMES)}: {fault.message}")
                for fault, names in faults.items()
            ]
            raise file.refusal(named)
        return found

    async with Estimator(observer, MOST_SECONDS) as estimator:
        await each(estimator.check)  # all mistakes are told before the first measurement
        plans: list[SearchPlan] = await each(partial(estimator.plan, timed=timed))
    total = _total(plans, file.settings.at_once)
    notes = _limits(file.settings, total)
    missing = sum(plan.estimate.seconds is None for plan in plans) if timed else 0
    if missing:
        notes.insert(
            0,
            f"the wall time leaves out {missing} of {plural(len(plans), 'search', 'searches')},"
            f" whose pace was not measured within {duration(MOST_SECONDS)}; the same command"
            " measures more",
        )
    notes += dict.fromkeys(note for plan in plans for note in plan.notes)
    return BatchPlan(tuple(zip(searches, plans, strict=True)), total, tuple(notes))


def _fault(search: PlannedSearch, error: EurekaError) -> FileFault:
    """The error at the setting that it is about: one whose flag or value its text has."""
    text = f"{error.message} {error.hint}"
    flags = [flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]*)", error.message)]

    def is_named(name: str) -> bool:
        value = search.values.get(name)
        members = value if isinstance(value, list | tuple) else (value,)
        return any(isinstance(each, str) and len(each) > 1 and each in text for each in members)

    named = [*filter(flags.__contains__, search.places), *filter(is_named, search.places)]
    place = search.places[named[0]] if named else search.place
    return FileFault(place, error.message, error.hint)


def _total(plans: Sequence[SearchPlan], at_once: int) -> SearchEstimate:
    """The sums. Searches under way at a time wait for models together, but train in turns."""
    estimates = [plan.estimate for plan in plans]
    seconds = [each.seconds for each in estimates if each.seconds is not None]
    busy = sum(plan.busy_seconds or 0.0 for plan in plans)
    return SearchEstimate(
        trainings=sum(each.trainings for each in estimates),
        env_steps=sum(each.env_steps for each in estimates),
        seconds=max(busy, sum(seconds) / at_once, *seconds) if seconds else None,
        **asked_in_all(estimates),
    )


def _limits(settings: BatchSettings, total: SearchEstimate) -> list[str]:
    found = []
    if settings.max_cost is not None and (total.money or 0) > settings.max_cost:
        found.append(f"max_cost ends the designing at ${settings.max_cost}")
    tokens = total.prompt_tokens + total.reply_tokens
    if settings.max_tokens is not None and tokens > settings.max_tokens:
        found.append(f"max_tokens ends the designing at {settings.max_tokens:,} tokens")
    left = TimeLeft(settings.max_time).limit()
    if left is not None and (total.seconds or 0.0) > left.seconds:
        found.append(f"it does not fit into {left.text}; the same command goes on")
    return found


def render_plan(plan: BatchPlan, folder: Path) -> RenderableType:
    titles = ("search", "task", "proposals", "trainings", "env steps", "time", "cost")
    rows = []
    for search, its in plan.searches:
        estimate = its.estimate
        known = "?" if estimate.money is None else f"${estimate.money:,.2f}"
        row = (
            search.name,
            f"{its.description.environment}/{its.description.task}",
            f"{its.settings.iterations} × {its.counts.candidates}",
            f"{estimate.trainings:,}",
            count(estimate.env_steps),
            "" if estimate.seconds is None else duration(estimate.seconds),
            known if estimate.requests else "",
        )
        rows.append(row)
    table = render_block(Grid(titles, rows, numbers=titles[3:]))
    there = (folder / BATCH_FILE).is_file()
    known = " (there is a batch already: it goes on, and needs less)" if there else ""
    size = plural(len(plan.searches), "search", "searches")
    facts = {"searches": f"{size} in {folder}{known}", **facts_of(plan.total)}
    return Group(*table, "", facts_grid(facts), "", *render_notes(plan.notes))


def plan_as_json(file: BatchFile, plan: BatchPlan, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "limits": file.settings.model_dump(mode="json"),
        "searches": [
            {"name": search.name, "settings": search.values, **estimate_to_json(its.estimate)}
            for search, its in plan.searches
        ],
        "total": estimate_to_json(plan.total),
        "notes": list(plan.notes),
    }
