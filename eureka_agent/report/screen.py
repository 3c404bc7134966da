"""The screen of a search in the foreground: its log and its progress view."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.report.live import LogFile, progress_view
from eureka_agent.report.terminal import CleanConsole

ResultT = TypeVar("ResultT")
TICK_S = 1.0
"""Seconds between two checks whether a line of progress is due."""


class LastingConsole(CleanConsole):
    """A console that writes to nowhere once its reader is gone: `| head`, a closed terminal."""

    def on_broken_pipe(self) -> None:
        """Go on silently, where rich would end the program."""
        self.quiet = True
        with suppress(OSError, ValueError):  # a file without a descriptor has no pipe either
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


class Screen:
    """Log and progress view of a search, which can make room for a question. A search whose output
    has lost its reader goes on without a view."""

    def __init__(self, console: LastingConsole, log: LogFile | None = None) -> None:
        self._console, self._log, self._view = console, log, progress_view(console)
        self.folder: Path | None = None

    def __enter__(self) -> Screen:
        self._view.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._dropping():
            self._view.__exit__(*exception)

    def __call__(self, event: BaseEntry) -> None:
        if isinstance(event, RunStarted):
            self.folder = event.run_folder
        if self._log is not None:
            self._log(event)
        if not self._console.quiet:
            with self._dropping():
                self._view(event)

    async def tick(self) -> None:
        """Show progress where it is due, every second: a search that waits has no entries."""
        while True:
            await asyncio.sleep(TICK_S)
            if self._log is not None:
                self._log.tick()
            if not self._console.quiet:
                with self._dropping():
                    self._view.tick()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Free the terminal in the block."""
        with nullcontext() if self._console.quiet else self._view.paused():
            yield

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # a pipe without a reader, a terminal that was closed
            self._console.on_broken_pipe()


async def shown(work: Callable[[], Coroutine[Any, Any, ResultT]], screen: Screen) -> ResultT:
    """Run a coroutine, with the screen's progress meanwhile."""
    with screen:
        ticking = asyncio.create_task(screen.tick())
        try:
            return await work()
        finally:
            ticking.cancel()
