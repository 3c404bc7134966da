"""Progress of a batch: a live view on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.attempt_words import merit_words
from eureka_agent.batch.lines import STYLES, event_line
from eureka_agent.batch.queue import ENDED, Event, State
from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.report import progress
from eureka_agent.report.live import SteadyLive
from eureka_agent.report.progress import Watched

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
        self._states: dict[str, State] = {}
        self._searches: dict[str, Watched] = {}
        """Views of the searches under way."""
        self._live = SteadyLive(self, console)
        self._live.transient = True

    def __enter__(self) -> BatchView:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def tick(self) -> None:
        """Draw the picture as it is now."""
        self._live.refresh()

    def know(self, states: Mapping[str, str]) -> None:
        """Take over the states of all searches, by name."""
        self._states = {name: State(state) for name, state in states.items()}

    def event(self, event: Event) -> None:
        """Show an event: as a line above the picture, where the picture does not say it."""
        if event.search is not None and event.state is not None:
            self._states[event.search] = event.state
            if event.state not in (State.RUNNING, State.PAUSED):
                self._searches.pop(event.search, None)
        if event.state not in _QUIET or event.text:
            self._live.console.print(Text(event_line(event), style=STYLES.get(event.kind, "")))

    def entry(self, search: str, entry: BaseEntry) -> None:
        """Apply an entry of a search's journal, from its start in this process on."""
        if isinstance(entry, RunStarted):
            self._searches[search] = Watched(self._clock)
        if search in self._searches:
            self._searches[search].see(entry)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        counts = Counter(state.value for state in self._states.values())
        ended = sum(state in ENDED for state in self._states.values())
        rates = (each.state.under_way.steps_per_second for each in self._searches.values())
        speed = sum(rate or 0.0 for rate in rates)
        parts = [
            f"{ended} of {len(self._states)} searches have ended",
            *(f"{number} {state}" for state, number in counts.items()),
            *([f"{wording.count(speed)} steps/s"] if speed else []),
            f"{wording.clock_time(self._clock() - self._began)} elapsed",
        ]
        yield Text.assemble((self._title, "bold"), f"  {' · '.join(parts)}")
        shown = list(self._searches.items())
        hidden = max(0, len(shown) - max(0, (options.height or console.height) - 5))
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        for title in ("search", "phase", "trainings", "best", "now", "left"):
            table.add_column(title, no_wrap=True, overflow="ellipsis")
        for name, watched in shown[: len(shown) - hidden]:
            table.add_row(*self._cells(name, watched))
        if shown:
            yield table
        if hidden:
            yield Text(f"  and {wording.plural(hidden, 'more search', 'more searches')}", "dim")

    def _cells(self, name: str, watched: Watched) -> list[str]:
        state, under_way = watched.state, watched.state.under_way
        board = progress.leaderboard(state)
        left = progress.seconds_left(state, watched.seconds())
        now = {
            "training": len(under_way.running),
            "waiting": len(under_way.queued),
            "asking": len(under_way.requests),
        }
        done, total = progress.trainings_done(state), progress.trainings_total(state)
        return [
            name,
            "paused" if self._states.get(name) is State.PAUSED else progress.phase(state),
            f"{done}/{total}" if total else "",
            merit_words(board[0]) if board else "",
            ", ".join(f"{number} {doing}" for doing, number in now.items() if number),
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

    def tick(self) -> None:
        """Do nothing: lines are written once."""

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
