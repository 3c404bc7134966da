"""Calibration of this machine: tasks as a worker describes them, and the pace of their trainings.

Both are kept beside the runs, so that a worker is needed once for each task and size of trainings.
Environments without files of their own (`gymnasium:<id>`) are known by name and versions alone,
since the driver does not load them: a search opens each anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from eureka_agent.archive.cache import RecordCache
from eureka_agent.archive.run_folder import runs_folder
from eureka_agent.base_record import Record
from eureka_agent.environment_files import fingerprint_of, folder_files
from eureka_agent.errors import EnvironmentLoadError, EurekaError
from eureka_agent.fleet.devices import Hardware
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.problem import Problem
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.protocol.events import Opened
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.pace import CACHE, Pace, pace_of, this_machine
from eureka_agent.search.preparation import measure_task
from eureka_agent.settings import SearchSettings
from eureka_agent.simulation.catalogue import GYMNASIUM_PREFIX, find_folder


class OpenedTask(Record):
    """A worker's description of a task, with its measurements."""

    opened: Opened
    seconds: float
    """Wall time until the worker had it."""


class Calibration:
    """Descriptions and paces, from the cache or from workers."""

    def __init__(
        self, observer: Observer, scratch: Callable[[], Path], most_seconds: float
    ) -> None:
        """`observer` gets a notice before a worker starts; `scratch` gives a folder for workers. No
        pace is measured later than `most_seconds` after the first one."""
        self._observer = observer
        self._most_seconds = most_seconds
        self._until: float | None = None
        self._scratch = scratch
        self._cache = RecordCache(runs_folder(), CACHE)
        self._machine = this_machine()
        self._files: dict[str, str] = {}
        self._failed: dict[tuple[str, str | None, str], EurekaError] = {}
        """Errors of tasks that could not be opened."""

    async def opened(self, asked: SearchSettings, wall: Wall) -> OpenedTask:
        """The task of a search, from the cache or a worker. Raises the worker's errors."""
        key = {
            "environment": asked.env,
            "files": self._fingerprint(asked.env),
            "task": asked.task,
            "wall": wall.name,
            **self._machine,
        }
        known = self._cache.find(key, OpenedTask)
        if known is not None:
            return known
        place = asked.env, asked.task, wall.name
        if place in self._failed:
            raise self._failed[place]
        task = "" if asked.task is None else f", task {asked.task!r}"
        self._observer(Notice(text=f"opening {asked.env!r}{task}"))
        began = time.monotonic()
        runner = DryRunner(
            wall,
            Problem(asked.env, asked.task),
            self._scratch() / "dry-runs",
            asked.dry_run_timeout,
        )
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

    async def pace(
        self, settings: SearchSettings, task: OpenedTask, hardware: Hardware, wall: Wall
    ) -> Pace:
        """The pace of such trainings, from the cache or measured. See `pace_of` for errors."""
        self._until = self._until or time.monotonic() + self._most_seconds
        description, scratch = task.opened.description, self._scratch()
        return await pace_of(
            settings, description, hardware, wall, scratch, self._observer, until=self._until
        )

    def _fingerprint(self, reference: str) -> str:
        """Fingerprint of an environment's files, without loading them; empty without files."""
        if reference.startswith(GYMNASIUM_PREFIX):
            return ""
        if reference not in self._files:
            folder = find_folder(reference)
            try:
                self._files[reference] = fingerprint_of(folder_files(folder))
            except OSError as error:
                raise EnvironmentLoadError(
                    f"the environment {reference!r} cannot be read: {error}", "check the file"
                ) from None
        return self._files[reference]
