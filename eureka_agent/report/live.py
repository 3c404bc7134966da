"""Progress of a running search: a live view on a terminal, lines elsewhere and in `log.txt`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from eureka_agent.archive.safe_files import open_plain
from eureka_agent.journal.entries import BaseEntry, Notice, RunEnded, RunStarted
from eureka_agent.journal.progress import TrainingProgress
from eureka_agent.records import RunStatus
from eureka_agent.report.panels import search_panel
from eureka_agent.report.progress import Watched, progress_line, told
from eureka_agent.text import printable

PROGRESS_INTERVAL_S = 60.0
"""Seconds between two lines of progress."""
SHORT_INTERVAL_S = 10.0
"""The same after a change of what runs."""


class LiveView:
    """The live view, an observer of entries, drawn at each tick. The picture of a finished run is
    removed; that of a stopped or failed run stays."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._watched = Watched(clock)
        self._console = console
        self._live = self._new_live()

    def _new_live(self) -> Live:
        return Live(self, console=self._console, auto_refresh=False, vertical_overflow="crop")

    def __call__(self, entry: BaseEntry) -> None:
        self._watched.see(entry)
        if isinstance(entry, Notice) and entry.stays:
            style = "yellow" if entry.level == "warning" else ""
            self._console.print(Text(" ".join(printable(entry.text).split()), style=style))

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.transient = self._watched.state.status is RunStatus.FINISHED
        self._live.refresh()
        self._live.stop()

    def tick(self) -> None:
        """Draw the picture as it is now."""
        self._live.refresh()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the picture in the block."""
        self._live.transient = True
        self._live.stop()
        try:
            yield
        finally:
            # a used display would erase the output of the block
            self._live = self._new_live()
            self._live.start()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # without a line for the cursor and one for the last line feed the title would scroll away
        height = (options.height or console.height) - 2
        picture = search_panel(self._watched.state, self._watched.seconds(), height)
        for line in console.render_lines(picture, options, pad=False)[:height]:
            yield from line
            yield Segment.line()
        # the cursor waits on an empty line, so that a terminal's ^C wraps no line of the picture
        yield Segment.line()


class PlainLog:
    """Log of entries and progress with the elapsed time, for pipes, CI logs and dumb terminals:
    lines without colour or cursor movement."""

    def __init__(self, file: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._watched = Watched(clock)
        self._last: float | None = None
        self._last_counts: tuple[int, ...] = ()

    def __enter__(self) -> PlainLog:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def paused(self) -> AbstractContextManager[object]:
        """Do nothing: lines do not hold the terminal."""
        return nullcontext()

    def __call__(self, entry: BaseEntry) -> None:
        self._watched.see(entry)
        if isinstance(entry, TrainingProgress):
            self.tick()
        for line in told(entry, self._watched.state):
            self._write(line)

    def tick(self) -> None:
        """Write progress where it is due; called every second, since waits have no entries."""
        now, state = self._clock(), self._watched.state
        if self._last is None:
            self._last = now
        since = now - self._last
        if self._watched.has_ended or since < SHORT_INTERVAL_S:
            return
        under_way = state.under_way
        counts = (len(under_way.running), len(under_way.queued), len(under_way.requests))
        if counts != self._last_counts or since >= PROGRESS_INTERVAL_S:
            self._last, self._last_counts = now, counts
            self._write(progress_line(state, self._watched.seconds()))

    def _write(self, text: str) -> None:
        line = " ".join(printable(text).split())
        self._file.write(f"[{self._watched.seconds():7.1f} s] {line}\n")
        self._file.flush()


class LogFile:
    """Writes the lines of a run to its `log.txt`, which never stops a search."""

    def __init__(self) -> None:
        self._log: PlainLog | None = None
        self._handle: IO[str] | None = None

    def tick(self) -> None:
        """Write progress where it is due."""
        if self._log is not None:
            with suppress(OSError):
                self._log.tick()

    def __call__(self, entry: BaseEntry) -> None:
        """Write an entry's lines."""
        with suppress(OSError):
            if isinstance(entry, RunStarted) and self._handle is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                log = open_plain(entry.run_folder / "log.txt", flags)
                self._handle = os.fdopen(log, "a", encoding="utf-8")
                self._log = PlainLog(self._handle)
            if self._log is not None:
                self._log(entry)
            if isinstance(entry, RunEnded) and self._handle is not None:
                self._log = None  # requests that are given up later have no line
                self._handle.close()


def progress_view(
    console: Console, clock: Callable[[], float] = time.monotonic
) -> LiveView | PlainLog:
    """Live view on a terminal, plain log elsewhere (a pipe, a CI log)."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, clock)
    return PlainLog(console.file, clock)
