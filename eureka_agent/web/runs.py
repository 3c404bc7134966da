"""Runs of the runs folder, of which those looked at last stay open. Everything here runs on one
thread (`Reader`), since SQLite's connections belong to one."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from eureka_agent.archive.files import FILE_NAME, is_held
from eureka_agent.archive.run_folder import (
    SETTINGS_FILE,
    Run,
    list_batches,
    list_runs,
    open_run,
    runs_folder,
)
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.records import Stage
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.tables import MARKS, fitness_mark
from eureka_agent.report.verdict import best_fitness, fitness_text
from eureka_agent.search.summary import run_overview

MOST_OPEN = 4
"""Runs that stay open; one of 1,000 attempts takes about 10 MB."""

ResultT = TypeVar("ResultT")
Card = Mapping[str, Any]
"""Facts of a run for the list; `fault` and `hint` of one that cannot be opened."""
Mark = tuple[int, int, int, bool]
"""File, size and time of change of an archive, and whether a process works on it."""


def folder_of(name: str) -> Path:
    """Folder of a run by its name, or by `<batch>:<search>`. Raises RunFolderError for a run that
    is not there."""
    known = {folder.name: folder for folder in list_runs()}
    batch = next((each for each in list_batches() if name.startswith(f"{each.name}:")), None)
    if batch is not None:
        known |= {f"{batch.name}:{folder.name}": folder for folder in list_runs(batch)}
    if name not in known:
        raise RunFolderError(f"there is no run {name[:100]!r} here", "the list has all runs")
    return known[name]


class Reader:
    """One thread for all that is read from the disk."""

    def __init__(self, first: Callable[[], None] | None = None) -> None:
        """`first` is done before all else."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="reader")
        if first is not None:
            self._executor.submit(first)

    async def __call__(self, function: Callable[[], ResultT]) -> ResultT:
        """Result of a function that runs on the thread. Raises EurekaError once the server ends."""
        try:
            result = asyncio.get_running_loop().run_in_executor(self._executor, function)
        except RuntimeError:  # the thread takes nothing more
            raise EurekaError("the server of this page ends", "start it again") from None
        return await result

    def close(self) -> None:
        """End the thread once it has nothing to do."""
        self._executor.shutdown(wait=False)


def mark_of(folder: Path) -> Mark | None:
    """Mark of a run's archive, which changes with it; None where there is none."""
    try:
        status = os.stat(folder / FILE_NAME)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, is_held(folder)


class OpenRun:
    """A run that is read further at each look."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self._files, self._first = _files(folder), mark_of(folder)  # before they are read
        self.run: Run = open_run(folder, reading=True)
        self._mark: Mark | None = None
        self._report: RunReport | None = None

    def is_current(self) -> bool:
        """True where the run can be read further: it is the same one with the same settings, and
        its archive is not a copy that has become old."""
        if self.run.archive.stands_still and mark_of(self.folder) != self._first:
            return False
        return bool(self._files) and _files(self.folder) == self._files

    def report(self) -> RunReport:
        """Overview of the run now: attempts in brief."""
        mark = mark_of(self.folder)
        if self._report is None or mark != self._mark:
            self._report = replace(run_overview(self.run), run_name=self.name)
            self._mark = mark
        return self._report


def _files(folder: Path) -> tuple[int, ...]:
    """Identity of a run's archive and of its settings; empty where one of them is not there."""
    try:
        archive, settings = os.stat(folder / FILE_NAME), os.stat(folder / SETTINGS_FILE)
    except OSError:
        return ()
    return archive.st_dev, archive.st_ino, settings.st_ino, settings.st_mtime_ns


class OpenRuns:
    """The runs by name."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._cards: dict[str, tuple[Mark | None, Card]] = {}

    def names(self) -> list[str]:
        """Names of all runs, newest first."""
        return [folder.name for folder in reversed(list_runs())]

    def card(self, name: str) -> Card:
        """Facts of a run for the list."""
        folder = runs_folder() / name
        mark = mark_of(folder)
        known = self._cards.get(name)
        if known is None or known[0] != mark:
            known = mark, _card(folder)
            self._cards[name] = known
        return known[1]

    def use(self, name: str, work: Callable[[OpenRun], ResultT]) -> ResultT:
        """Result of work on a run, which is opened anew where its file cannot be read any further:
        only a fresh connection can read the file of a process that was killed in a write. Raises
        RunFolderError for a run that is not there, EurekaError for one that cannot be read."""
        known = self._open.get(name)
        if known is not None and known.is_current():
            self._open.move_to_end(name)
            with suppress(EurekaError):
                return work(known)
        self.drop(name)
        self._open[name] = opened = OpenRun(folder_of(name), name)
        while len(self._open) > MOST_OPEN:
            self.drop(next(iter(self._open)))
        return work(opened)

    def drop(self, name: str) -> None:
        """Close a run."""
        dropped = self._open.pop(name, None)
        if dropped is not None:
            dropped.run.archive.close()


def _card(folder: Path) -> Card:
    try:
        opened = OpenRun(folder, folder.name)
        with closing(opened.run.archive):
            report = opened.report()
    except EurekaError as error:
        return {"name": folder.name, "fault": error.message, "hint": error.hint}
    description, human, mark = report.description, report.score("human"), fitness_mark(report)
    return {
        "name": report.run_name,
        "fault": "",
        "status": report.status.value,
        "sentence": report.sentence,
        "place": f"{description.environment} · {description.task}",
        "best": best_fitness(report),
        "human": "" if human is None else fitness_text(report, human.mean, human.std),
        "mark": mark,
        "mark_meaning": MARKS.get(mark, ""),
        "trained": sum(attempt.stage is Stage.TRAINED for attempt in report.attempts),
        "attempts": len(report.attempts),
        "started": report.started,
        "seconds": report.seconds,
        "money": report.cost.money,
        "requests": report.cost.requests,
    }
