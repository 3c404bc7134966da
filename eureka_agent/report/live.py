"""Shows a running search: a live view on a terminal, log lines anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from eureka_agent.llm.text import printable
from eureka_agent.report.events import Event, Notice
from eureka_agent.report.panels import SearchPanel
from eureka_agent.report.plain import PlainLog
from eureka_agent.report.state import SearchView

REFRESHES_PER_SECOND = 2.0


class ProgressView(Protocol):
    """An observer that owns the terminal while it is entered."""

    def __call__(self, event: Event) -> None: ...

    def paused(self) -> AbstractContextManager[object]:
        """Leaves the terminal to somebody else for a while."""
        ...

    def __enter__(self) -> ProgressView: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class LiveView:
    """The rich live view. Events only change the view model; a thread of rich's draws it twice a second."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.view = SearchView()
        self._panel = SearchPanel(self.view, clock)
        self._live = Live(self, console=console, refresh_per_second=REFRESHES_PER_SECOND, vertical_overflow="crop")

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.view.apply(event, self._clock())
        if isinstance(event, Notice) and event.stays:
            style = "yellow" if event.level == "warning" else ""
            self._live.console.print(Text(" ".join(printable(event.text).split()), style=style))

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is drawn in the block."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            segments = list(self._panel.__rich_console__(console, options))
        yield from segments


def progress_view(console: Console, clock: Callable[[], float] = time.monotonic) -> ProgressView:
    """The live view on a terminal, one plain line per event elsewhere (a pipe, a CI log)."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, clock)
    return PlainLog(console, clock)
