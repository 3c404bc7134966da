"""Progress of a batch: a live view on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from eureka_agent import wording
from eureka_agent.batch.lines import STYLES, event_line
from eureka_agent.batch.queue import ENDED, Event, State
from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.report.entries import merit_words
from eureka_agent.report.lines import Column, Line, Lines, rows
from eureka_agent.report.live import REFRESHES_PER_SECOND, SteadyLive
from eureka_agent.report.state import SearchView

NAME_CELLS = 40
"""Most cells of a search's name."""
_QUIET = (State.RUNNING, State.WAITING)
"""Changes of state that the picture shows, and that get no line above it unless they say why."""


class BatchView:
    """The view of a batch that runs in this process. Its picture is removed at the end."""

    def __init__(
        self,
        console: Console,
        title: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = title
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._states: dict[str, State] = {}
        self._searches: dict[str, SearchView] = {}
        """Views of the searches under way."""
        self._live = SteadyLive(
            self,
            console=console,
            refresh_per_second=REFRESHES_PER_SECOND,
            vertical_overflow="crop",
            transient=True,
        )

    def __enter__(self) -> BatchView:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def know(self, states: Mapping[str, str]) -> None:
        """Take over the states of all searches, by name."""
        with self._lock:
            self._states = {name: State(state) for name, state in states.items()}

    def event(self, event: Event) -> None:
        """Show an event: as a line above the picture, where the picture does not say it."""
        with self._lock:
            if event.search is not None and event.state is not None:
                self._states[event.search] = event.state
                if event.state not in (State.RUNNING, State.PAUSED):
                    self._searches.pop(event.search, None)
        if event.state not in _QUIET or event.text:
            self._live.console.print(Text(event_line(event), style=STYLES.get(event.kind, "")))

    def entry(self, search: str, entry: BaseEntry) -> None:
        """Apply an entry of a search's journal, from its start in this process on."""
        with self._lock:
            if isinstance(entry, RunStarted):
                self._searches[search] = SearchView()
            view = self._searches.get(search)
            if view is not None:
                view.apply(entry, self._clock())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            lines = self.lines(options.max_width, (options.height or console.height) - 2)
        yield Lines(lines)
        yield Segment.line()

    def lines(self, width: int, height: int) -> list[Line]:
        """The picture in at most `height` lines of `width` cells."""
        counts = Counter(state.value for state in self._states.values())
        ended = sum(state in ENDED for state in self._states.values())
        speed = sum(view.steps_per_second or 0.0 for view in self._searches.values())
        parts = [
            f"{ended} of {len(self._states)} searches have ended",
            *(f"{number} {state}" for state, number in counts.items()),
            *([f"{wording.count(speed)} steps/s"] if speed else []),
            f"{wording.clock_time(self._clock() - self._began)} elapsed",
        ]
        heading: Line = [(self._title, "bold"), (f"  {' · '.join(parts)}", "")]
        shown = list(self._searches.items())
        hidden = max(0, len(shown) - max(0, height - 3))
        shown = shown[: len(shown) - hidden]
        if not shown:
            return [heading]
        cells = [self._cells(name, view) for name, view in shown]
        bests = max(9, *(len(row[3]) for row in cells))
        columns = [
            Column("search", min(NAME_CELLS, max(len(name) for name, _ in shown)), "bold"),
            Column("phase", 0),
            Column("trainings", 9, right=True),
            Column("best", bests, "green", right=True),
            Column("now", 22, "cyan"),
            Column("left", 8, right=True),
        ]
        lines = [heading, *rows(columns, cells, width)]
        if hidden:
            lines.append(
                [(f"  and {wording.plural(hidden, 'more search', 'more searches')}", "dim")]
            )
        return lines[: max(1, height)]

    def _cells(self, name: str, view: SearchView) -> list[str]:
        leaderboard = view.attempts.leaderboard
        left = view.seconds_left(self._clock())
        now = [
            (len(view.running), "training"),
            (len(view.queued), "waiting"),
            (view.requests.pending, "asking"),
        ]
        paused = self._states.get(name) is State.PAUSED
        return [
            name,
            "paused" if paused else view.phase,
            f"{view.trainings_done}/{view.trainings_total}" if view.trainings_total else "",
            merit_words(leaderboard[0]) if leaderboard else "",
            ", ".join(f"{number} {doing}" for number, doing in now if number),
            wording.clock_time(left) if left is not None else "",
        ]


class BatchLines:
    """A line for each event, without cursor movement."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> BatchLines:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def know(self, states: Mapping[str, str]) -> None:
        """Do nothing: lines need no states."""

    def event(self, event: Event) -> None:
        """Write an event."""
        self._console.print(Text(event_line(event)), soft_wrap=True)

    def entry(self, search: str, entry: BaseEntry) -> None:
        """Do nothing: what concerns the batch is an event."""


def batch_view(console: Console, title: str) -> BatchView | BatchLines:
    """Live view on a terminal, lines elsewhere (a pipe, a file, a service's log)."""
    if console.is_terminal and not console.is_dumb_terminal:
        return BatchView(console, title)
    return BatchLines(console)
