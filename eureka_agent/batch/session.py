"""A batch from its file to its summary, in one process."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import FILE_NAME, copy_file, is_held, locked, write_text
from eureka_agent.archive.run_folder import reading
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.batch.control import NobodyListensError, ask, listening, socket_folder
from eureka_agent.batch.driver import BatchDriver
from eureka_agent.batch.file import BatchFile, BatchSettings
from eureka_agent.batch.folder import (
    BATCH_COPY,
    STOP_FILE,
    bring_back,
    bring_up_to_date,
    check_folder,
)
from eureka_agent.batch.limits import shared_budget
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.batch.notifications import Notifications, notifier
from eureka_agent.batch.queue import ENDED, Entry, Event, Queue, State
from eureka_agent.batch.requests import Requests
from eureka_agent.batch.summary import Row, Summary
from eureka_agent.cluster.ray_cluster import connected
from eureka_agent.errors import DiskFullError, RunFolderError
from eureka_agent.fleet.machine import Machine
from eureka_agent.invocation import command
from eureka_agent.journal.entries import BaseEntry
from eureka_agent.llm.budget import Budget
from eureka_agent.llm.prices import Price
from eureka_agent.records import Message
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.models import models_of
from eureka_agent.settings import SearchSettings, parse_settings

SUMMARY_S = 30.0
"""Seconds between two summaries while nothing ends."""
SOCKET = "socket"
"""Fact of the queue: path of the control socket of the process that works on the batch."""


@dataclass
class BatchEnd:
    """State of a batch at the end of a call of the command."""

    rows: list[Row]
    message: str
    states: dict[str, State] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if a search failed."""
        return State.FAILED in self.states.values()


def counted(states: Iterable[str]) -> str:
    """`3 finished, 1 failed`."""
    found = Counter(states)
    return ", ".join(f"{number} {state}" for state, number in found.items())


async def run_batch(
    file: BatchFile,
    searches: Sequence[PlannedSearch],
    folder: Path,
    command_line: list[str],
    observer: Callable[[Event], None],
    *,
    trust: bool = False,
    watch: Callable[[str, BaseEntry], None] = lambda search, entry: None,
    ready: Callable[[Mapping[str, Any]], None] = lambda facts: None,
) -> BatchEnd:
    """Run the searches that have not ended. `observer` gets each event, `watch` each entry of a
    search's journal; `ready` gets id, folder and socket once the batch runs.

    Raises RunFolderError for a folder that is another's or in use, BatchChangedError for a file
    that has changed.
    """
    service = notifier()
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    next_step = f"`{command(f'batch status {folder}')}` shows it"
    with locked(folder, "batch", next_step), closing(Queue(folder, make=True)) as queue:
        queue.tell = lambda text: observer(Event(time.time(), None, "warning", text))
        bring_up_to_date(queue, searches)
        if file.text is not None:
            write_text(folder / BATCH_COPY, file.text)
        elif file.path.resolve() != (folder / BATCH_COPY).resolve():
            copy_file(file.path, folder / BATCH_COPY)
        (folder / STOP_FILE).unlink(missing_ok=True)
        summary = Summary(folder)
        if all(entry.state in ENDED for entry in queue.entries()):
            return _end(queue, summary, "nothing is left to do")
        async with AsyncExitStack() as stack:
            wall = choose_wall(file.settings.sandbox)
            scratch = stack.enter_context(driver_scratch())
            cluster = stack.enter_context(connected(file.settings.cluster, file.settings.sandbox))
            machine = Machine(wall, scratch, file.settings.workers, cluster)
            await stack.enter_async_context(machine)
            renewing = _Renewing(queue, summary)
            told = Notifications(service, lambda text: observer(queue.record("warning", text)))

            def observe(event: Event) -> None:
                renewing.observe(event)
                observer(event)
                if event.state is State.FAILED and event.search is not None:
                    told.failed(folder.name, event.search, event.text)

            driver = BatchDriver(
                queue,
                file.settings,
                machine,
                command_line,
                observe,
                await _budget(file.settings, queue),
                trust=trust,
                watch=watch,
            )
            _remove_socket(queue.get(SOCKET))
            path = await stack.enter_async_context(listening(Requests(driver).answer))
            queue.put(SOCKET, str(path))
            queue.record("started", f"process {os.getpid()}")
            stack.callback(_forget_socket, queue)
            ready({"id": folder.name, "folder": str(folder.resolve()), "socket": str(path)})
            task = asyncio.create_task(renewing.work())
            told.started(folder.name, sum(each.state not in ENDED for each in queue.entries()))
            try:
                await driver.run()
            finally:
                task.cancel()
                reason = driver.stopping and f"stopped because {driver.stopping}"
                end = _end(queue, summary, reason)
                told.ended(folder.name, counted(end.states.values()))
                await told.finish()
        return end


def _remove_socket(path: str | None) -> None:
    """Remove the socket that a killed process left; the lock of the batch says that it is gone."""
    if path and Path(path).parent == socket_folder() and Path(path).is_socket():
        Path(path).unlink(missing_ok=True)


def _forget_socket(queue: Queue) -> None:
    with suppress(DiskFullError):  # it must not hide the error that ends the batch
        queue.put(SOCKET, "")


class _Renewing:
    """Keeps the summaries current beside the searches."""

    def __init__(self, queue: Queue, summary: Summary) -> None:
        self._queue, self._summary = queue, summary
        self._due = asyncio.Event()

    def observe(self, event: Event) -> None:
        """Renew them soon after a search has changed its state."""
        if event.state is not None:
            self._due.set()

    async def work(self) -> None:
        """Write them until this is cancelled."""
        while True:
            try:
                async with asyncio.timeout(SUMMARY_S):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            entries = self._queue.entries()
            began = time.monotonic()
            try:
                self._summary.write(entries, state_in_words(entries, running=True))
            except RunFolderError as error:  # a full disk: the next one may work
                with suppress(DiskFullError):
                    self._queue.record("warning", error.message)
            # a slow disk must not take the driver's time
            await asyncio.sleep(20 * (time.monotonic() - began))


def state_in_words(entries: Sequence[Entry], *, running: bool) -> str:
    """`Running: 3 of 12 searches have ended`, `Finished`, or `Finished: 2 finished, 1 failed`."""
    ended = sum(entry.state in ENDED for entry in entries)
    if ended == len(entries):
        all_finished = all(entry.state is State.FINISHED for entry in entries)
        return (
            "Finished" if all_finished else f"Finished: {counted(each.state for each in entries)}"
        )
    return f"{'Running' if running else 'Stopped'}: {ended} of {len(entries)} searches have ended"


def _end(queue: Queue, summary: Summary, message: str) -> BatchEnd:
    entries = queue.entries()
    try:
        rows = summary.write(entries, state_in_words(entries, running=False))
    except DiskFullError:  # it must not hide the error that ends the batch
        rows = summary.rows(entries)
    return BatchEnd(rows, message, {entry.name: entry.state for entry in entries})


async def _budget(settings: BatchSettings, queue: Queue) -> Budget | None:
    """The shared budget, with what earlier calls have spent."""
    if settings.max_cost is None and settings.max_tokens is None:
        return None
    prices: dict[str, Price] = {}
    spent: list[Message] = []
    for entry in queue.entries():
        models = models_of(
            parse_settings(SearchSettings, entry.settings, "the batch"), lambda reason: None
        )
        if models is not None:
            prices |= models.prices
            await models.close()
        if (queue.folder / entry.name / FILE_NAME).is_file():
            with reading(str(queue.folder / entry.name)) as run:
                spent += run.archive.messages()
    return shared_budget(settings, prices, spent)


def ask_batch(folder: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to the process that works on a batch. Without one, `resume` queues what was
    cancelled, and others raise NobodyListensError."""
    path = status(folder)["socket"]
    again = command(shlex.join(["batch", str(folder / BATCH_COPY), "--folder", str(folder)]))
    if path is not None and is_held(folder):
        return ask(Path(path), request)
    if request["action"] != "resume":
        message = f"nobody works on the batch {folder.name!r}"
        raise NobodyListensError(message, f"go on with it: `{again}`")
    with locked(folder, "batch", "give the same command again"), closing(Queue(folder)) as queue:
        bring_back(queue, request["search"])
    at_rest = {"paused": False, "stopping": "", "trainings": 0, "again": again}
    return {**at_rest, "searches": status(folder)["searches"]}


def status(folder: Path) -> dict[str, Any]:
    """The state of a batch for views: is a process at work, and its searches."""
    with closing(Queue(folder, reading=True)) as queue:
        entries = queue.entries()
        return {
            "batch": folder.name,
            "folder": str(folder),
            "running": is_held(folder),
            "socket": queue.get(SOCKET) or None,
            "searches": {entry.name: entry.state.value for entry in entries},
        }
