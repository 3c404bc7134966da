"""The recorder: it stores every entry in the run's journal before anything reacts to it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import BaseEntry, Notice, Observer


class Recorder:
    """Stores entries and passes them on."""

    def __init__(self, run: Run, observer: Observer) -> None:
        self._run = run
        self._observer = observer
        self._before = run.seconds
        self._since = time.monotonic()
        run.archive.clock = self.seconds
        run.archive.tell = lambda text: observer(Notice(text=text, level="warning"))

    def seconds(self) -> float:
        """Wall time of the run so far, over all its resumptions."""
        return self._before + time.monotonic() - self._since

    def pass_on(self, entry: BaseEntry) -> None:
        """Pass on an entry that is stored."""
        self._observer(entry)

    def __call__(self, entry: BaseEntry) -> None:
        """Store the entry and pass it on. Raises RunFolderError if it cannot be stored."""
        self._run.archive.append(entry)
        self._observer(entry)

    async def keep_current(self) -> None:
        """Flush the archive every second, for observers in other processes."""
        while True:
            await asyncio.sleep(1.0)
            with suppress(RunFolderError):  # the next decision raises it
                self._run.archive.flush()
