"""The recorder: every entry goes into the run's journal before anybody hears of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import BaseEntry, Observer


class Recorder:
    """Appends every entry to the run's journal, and then hands it on."""

    def __init__(self, run: Run, observer: Observer) -> None:
        self._run = run
        self._observer = observer
        self._before = run.seconds
        self._since = time.monotonic()
        run.archive.clock = self.seconds

    def seconds(self) -> float:
        """Wall time spent on the run up to now, over all its resumptions."""
        return self._before + time.monotonic() - self._since

    def tell(self, entry: BaseEntry) -> None:
        """Hand on an entry that is recorded."""
        self._observer(entry)

    def __call__(self, entry: BaseEntry) -> None:
        """Record the entry, and tell of it. Raises RunFolderError where it cannot be stored."""
        self._run.archive.append(entry)
        self._observer(entry)

    async def keep_current(self) -> None:
        """Store what waits to be stored every second, for whoever looks on from elsewhere."""
        while True:
            await asyncio.sleep(1.0)
            with suppress(RunFolderError):  # whoever decides next is told
                self._run.archive.flush()
