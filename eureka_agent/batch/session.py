"""A batch from its file to its summary, in one process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import FILE_NAME, locked, write_text
from eureka_agent.archive.run_folder import reading
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.batch.driver import BatchDriver
from eureka_agent.batch.file import BatchFile, BatchSettings
from eureka_agent.batch.folder import (
    BATCH_COPY,
    ENDED,
    STOP_FILE,
    SearchState,
    check_folder,
    counted,
    plan_searches,
    searches_of,
    state_in_words,
)
from eureka_agent.batch.intents import BatchEvent, IntentsFile, SearchIntent
from eureka_agent.batch.limits import limits_on_models
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.batch.summary import BatchView, Summary, SummaryRow
from eureka_agent.batch.unattended import notifier, notify
from eureka_agent.errors import DiskFullError, RunFolderError
from eureka_agent.fleet.fleet import Machine
from eureka_agent.fleet.ray_cluster import connected
from eureka_agent.invocation import command
from eureka_agent.llm.budget import Budget
from eureka_agent.llm.prices import Price
from eureka_agent.records import Message
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.models import models_of
from eureka_agent.settings import SearchSettings, parse_settings

SUMMARY_S = 30.0
"""Seconds between two summaries while nothing ends."""


async def run_batch(
    file: BatchFile,
    searches: Sequence[PlannedSearch],
    folder: Path,
    command_line: list[str],
    view: BatchView,
    *,
    trust: bool = False,
    ready: Callable[[Mapping[str, Any]], None] = lambda facts: None,
) -> tuple[list[SummaryRow], str]:
    """Run the searches that have not ended. `ready` gets id and folder once the batch runs. Returns
    the summary, and why the batch ended.

    Raises RunFolderError for a folder that is another's or in use, SettingsError for a file that
    has changed.
    """
    service = notifier()
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    next_step = f"`{command(f'batch status {folder}')}` shows it"
    with locked(folder, "batch", next_step):
        intents = IntentsFile(folder, make=True)
        plan_searches(intents, searches)
        write_text(folder / BATCH_COPY, file.text)
        (folder / STOP_FILE).unlink(missing_ok=True)
        summary = Summary(folder)
        states = {each.state for each in searches_of(intents, running=False)}
        if states <= {SearchState.FINISHED, SearchState.CANCELLED}:
            return _end(intents, summary), "nothing is left to do"
        async with AsyncExitStack() as stack:
            wall = choose_wall(file.settings.sandbox)
            scratch = stack.enter_context(driver_scratch())
            cluster = stack.enter_context(connected(file.settings.cluster, file.settings.sandbox))
            machine = Machine(wall, scratch, file.settings.workers, cluster)
            await stack.enter_async_context(machine)
            budget = await _budget(file.settings, intents)
            due = asyncio.Event()
            told: dict[str, asyncio.Task[None]] = {}
            """Notifications that are sent, each once."""

            async def tell(title: str, text: str) -> None:
                if fault := await notify(service, f"{folder.name}: {title}", text):
                    driver.record("warning", fault)

            def observe(event: BatchEvent) -> None:
                view.event(event)
                if event.search is not None and event.kind != "warning":
                    due.set()
                if event.kind == "failed" and "failed" not in told:
                    failure = tell(f"{event.search} failed", event.text)
                    told["failed"] = asyncio.create_task(failure)

            intents.observer = observe
            limits = file.settings.model_dump(mode="json", exclude_none=True)
            anew = {
                name: SearchIntent(
                    settings=each.settings, in_file=each.in_file, cancelled=each.cancelled
                )
                for name, each in intents.now.searches.items()
            }
            now: dict[str, Any] = {
                "limits": limits,
                "searches": anew,
                "paused": False,
                "stopping": "",
            }
            intents.record("started", f"process {os.getpid()}", **now, unheard=False)
            driver = BatchDriver(intents, file.settings, machine, command_line, budget, trust=trust)
            ready({"id": folder.name, "folder": str(folder.resolve())})
            task = asyncio.create_task(_keep_current(driver, summary, view, due))
            left = [each for each in searches_of(intents, running=True) if each.state not in ENDED]
            started = tell("started", f"{len(left)} searches wait.")
            told["started"] = asyncio.create_task(started)
            try:
                await driver.run()
            finally:
                task.cancel()
                rows = _end(intents, summary)
                await tell("ended", counted(row.state for row in rows))
                await asyncio.wait(told.values())
        return rows, (reason := intents.now.stopping) and f"stopped because {reason}"


async def _keep_current(
    driver: BatchDriver, summary: Summary, view: BatchView, due: asyncio.Event
) -> None:
    """Renew table and summaries from time to time, and soon when they are due."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(SUMMARY_S):
                await due.wait()
        due.clear()
        searches = searches_of(driver.intents, running=True)
        began = time.monotonic()
        try:
            view.rows(summary.write(searches, state_in_words(searches, running=True)))
        except RunFolderError as error:  # a full disk: the next one may work
            driver.record("warning", error.message)
        # a slow disk must not take the driver's time
        await asyncio.sleep(20 * (time.monotonic() - began))


def _end(intents: IntentsFile, summary: Summary) -> list[SummaryRow]:
    searches = searches_of(intents, running=False)
    try:
        return summary.write(searches, state_in_words(searches, running=False))
    except DiskFullError:  # it must not hide the error that ends the batch
        return summary.rows(searches)


async def _budget(settings: BatchSettings, intents: IntentsFile) -> Budget | None:
    """The shared budget, with what earlier calls have spent."""
    if settings.max_cost is None and settings.max_tokens is None:
        return None
    prices: dict[str, Price] = {}
    spent: list[Message] = []
    for name, asked in intents.now.searches.items():
        values = parse_settings(SearchSettings, asked.settings, "the batch")
        models = models_of(values, lambda reason: None)
        if models is not None:
            prices |= models.prices
            await models.close()
        if (intents.folder / name / FILE_NAME).is_file():
            with reading(str(intents.folder / name)) as run:
                spent += run.archive.messages()
    return Budget(limits_on_models(settings), prices, spent)
