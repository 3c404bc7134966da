"""Progress of a running search: a live view on a terminal, log lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from eureka_agent.journal.entries import BaseEntry, Notice
from eureka_agent.records import RunStatus
from eureka_agent.report.panels import SearchPanel
from eureka_agent.report.plain import PlainLog
from eureka_agent.report.state import SearchView
from eureka_agent.text import printable

REFRESHES_PER_SECOND = 2.0
BEGIN_UPDATE, END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronised output (mode 2026): a terminal that knows it never shows half a picture."""


class _Command:
    """A control sequence as something that rich prints."""

    def __init__(self, sequence: str) -> None:
        # any of rich's control codes marks it as no text
        self._segment = Segment(sequence, None, [(ControlType.HOME,)])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._segment


class SteadyLive(Live):
    """A live display in synchronised output."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        shown = super().process_renderables(renderables)
        return [_Command(BEGIN_UPDATE), *shown, _Command(END_UPDATE)]


class LiveView:
    """The rich live view. Events only change the view model; a thread of rich's draws it twice a
    second.

    The picture of a finished run is removed; that of a stopped or failed run stays.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.view = SearchView()
        self._panel = SearchPanel(self.view, clock)
        self._console = console
        self._live = self._new_display()

    def _new_display(self) -> Live:
        return SteadyLive(
            self,
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            vertical_overflow="crop",
        )

    def __call__(self, event: BaseEntry) -> None:
        with self._lock:
            self.view.apply(event, self._clock())
        if isinstance(event, Notice) and event.stays:
            style = "yellow" if event.level == "warning" else ""
            self._live.console.print(Text(" ".join(printable(event.text).split()), style=style))

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        ended = self.view.ended
        self._live.transient = ended is not None and ended.status is RunStatus.FINISHED
        self._live.stop()

    def tick(self) -> None:
        """Do nothing: the view draws itself."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the picture in the block."""
        self._live.transient = True
        self._live.stop()
        try:
            yield
        finally:
            # a used display would erase the output of the block
            self._live = self._new_display()
            self._live.start()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            segments = list(self._panel.__rich_console__(console, options))
        yield from segments
        # the cursor waits on an empty line, so that a terminal's ^C wraps no line of the picture
        yield Segment.line()


def progress_view(
    console: Console, clock: Callable[[], float] = time.monotonic
) -> LiveView | PlainLog:
    """Live view on a terminal, plain log elsewhere (a pipe, a CI log)."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, clock)
    return PlainLog(console, clock)
