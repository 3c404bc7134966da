"""One search of a batch: begun, or gone on with from its run folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import FILE_NAME
from eureka_agent.archive.run_folder import Run, reading
from eureka_agent.batch.folder import has_begun
from eureka_agent.batch.limits import cut_short
from eureka_agent.batch.queue import Entry, Queue, State
from eureka_agent.errors import SettingsError
from eureka_agent.fleet.share import Share
from eureka_agent.journal.entries import BaseEntry
from eureka_agent.records import RunStatus
from eureka_agent.report.live import LogFile
from eureka_agent.search.context import SearchContext
from eureka_agent.search.resumption import is_own
from eureka_agent.search.session import resume, start
from eureka_agent.search.summary import run_overview
from eureka_agent.settings import FREE_SETTINGS, SearchSettings, TrainingSettings, parse_settings


@dataclass(eq=False)
class Active:
    """A search that is under way."""

    entry: Entry
    share: Share
    may_ask: asyncio.Event
    """Set while models may be asked."""
    log: LogFile = field(default_factory=LogFile)
    ending: State | None = None
    """State that it gets when it is cancelled; None while nobody cancels it."""
    task: asyncio.Task[None] = field(init=False)


async def run_search(
    entry: Entry,
    context: SearchContext,
    command: list[str],
    observe: Callable[[BaseEntry], None],
    *,
    trust: bool,
) -> None:
    """Run a search to its end, in the context's folder. `command`: the command line, for the record
    of a new run. Raises SettingsError for the run of somebody else, unless there is `trust`."""
    folder = context.folder
    assert folder is not None
    if not has_begun(folder.parent, entry):
        run = await start(entry.settings, None, command, observe, None, context)
        run.archive.close()
    elif (changes := _changes(entry, folder, trust)) is not None:
        run = await resume(folder, observe, changes, context)
        run.archive.close()


def _changes(entry: Entry, folder: Path, trust: bool) -> dict[str, Any] | None:
    """Free settings that differ from the run's; None for a run that has finished with them."""
    with reading(str(folder)) as run:
        if not trust and not is_own(run, attempts=True):
            raise SettingsError(
                f"the run {str(run.folder)!r} is not your own, and a batch asks nobody",
                "look at it, and give the same command with --trust if you trust who made it",
            )
        asked = parse_settings(SearchSettings, entry.settings, "the batch")
        changes = {
            name: entry.settings[name]
            for name in entry.settings
            if name in FREE_SETTINGS and getattr(asked, name) != getattr(run.settings, name)
        }
        finished = run.status is RunStatus.FINISHED and not cut_short(run)
    return None if finished and not changes else changes


def steps_in(run: Run) -> int:
    """Env steps that a run has trained."""
    return run_overview(run, costs=False).cost.env_steps


def used_steps(queue: Queue) -> Iterator[tuple[str, int]]:
    """Names and trained env steps of the searches that have begun."""
    for entry in queue.entries():
        if (queue.folder / entry.name / FILE_NAME).is_file():
            with reading(str(queue.folder / entry.name)) as run:
                yield entry.name, steps_in(run)


def kind(entry: Entry) -> tuple[object, ...]:
    """Settings by which two searches can share workers."""
    names = ("env", "task", "device", *TrainingSettings.model_fields)
    return tuple(str(entry.settings.get(name)) for name in names)
