"""The file `log.txt` of a run: plain lines of what happens in it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TextIO

from eureka_agent.archive.safe_files import open_plain
from eureka_agent.journal.entries import BaseEntry, RunEnded, RunStarted
from eureka_agent.report.console import CleanConsole
from eureka_agent.report.plain import PlainLog


class LogFile:
    """Writes plain lines of the entries to the run's `log.txt`."""

    def __init__(self) -> None:
        self._observer: PlainLog | None = None
        self._handle: TextIO | None = None

    def tick(self) -> None:
        """Write progress where it is due."""
        if self._observer is not None:
            with suppress(OSError):
                self._observer.tick()

    def __call__(self, entry: BaseEntry) -> None:
        """Write an entry's lines."""
        if isinstance(entry, RunStarted) and self._handle is None:
            with suppress(OSError):  # a log that cannot be written must not stop a search
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                log = open_plain(entry.run_folder / "log.txt", flags)
                self._handle = os.fdopen(log, "a", encoding="utf-8")
                self._observer = PlainLog(CleanConsole(file=self._handle, width=160, no_color=True))
        if self._observer is not None and self._handle is not None:
            with suppress(OSError):
                self._observer(entry)
                self._handle.flush()
        if isinstance(entry, RunEnded) and self._handle is not None:
            self._observer = None  # requests that are given up later have no line
            with suppress(OSError):
                self._handle.close()
