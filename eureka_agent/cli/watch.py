"""Runs a search in the foreground: shows it, stops it cleanly on Ctrl-C, prints what came of it."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.archive.storage_errors import resume_command
from eureka_agent.cli.output import print_json, say
from eureka_agent.invocation import command
from eureka_agent.journal.entries import BaseEntry, Observer, RunEnded, RunStarted
from eureka_agent.records import RunStatus
from eureka_agent.report.console import CleanConsole

if TYPE_CHECKING:
    from eureka_agent.report.plain import PlainLog

TICK_S = 1.0
"""Seconds after which a log looks whether it has to tell of what is under way."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_HOLD_UP_S = 2.0
"""Seconds that a stop waits for one step of the search, such as the designs of a large
generation."""


class LastingConsole(CleanConsole):
    """A console that outlives its reader: after `| head` or a closed terminal it writes to
    nowhere."""

    def on_broken_pipe(self) -> None:
        """Go on in silence; rich's own way is to end the program."""
        self.quiet = True
        with suppress(OSError, ValueError):  # a file without a descriptor has no pipe either
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


class _Log:
    """Writes the plain lines of the events into the run's own log, from the first event on."""

    def __init__(self) -> None:
        self._observer: PlainLog | None = None
        self._handle: Any = None

    def tick(self) -> None:
        """Some time has passed."""
        if self._observer is not None:
            with suppress(OSError):
                self._observer.tick()

    def __call__(self, event: BaseEntry) -> None:
        from eureka_agent.report.plain import PlainLog

        if isinstance(event, RunStarted) and self._handle is None:
            with suppress(OSError):  # a log that cannot be written must not stop a search
                log = open_plain(
                    event.run_folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND
                )
                self._handle = os.fdopen(log, "a", encoding="utf-8")
                self._observer = PlainLog(CleanConsole(file=self._handle, width=160, no_color=True))
        if self._observer is not None:
            with suppress(OSError):
                self._observer(event)
                self._handle.flush()
        if isinstance(event, RunEnded) and self._handle is not None:
            self._observer = None  # a request that is given up after that has no line any more
            with suppress(OSError):
                self._handle.close()


class _Folder:
    """Remembers the run's folder."""

    def __init__(self) -> None:
        self.path: Path | None = None

    def __call__(self, event: BaseEntry) -> None:
        if isinstance(event, RunStarted):
            self.path = event.run_folder


class _View:
    """The progress view while it can be written: without a reader it is dropped, and the search
    goes on."""

    def __init__(
        self, console: LastingConsole, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from eureka_agent.report.live import progress_view

        self._console = console
        self._view = progress_view(console, clock)

    def __enter__(self) -> _View:
        self._view.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._dropping():
            self._view.__exit__(kind, error, traceback)

    def __call__(self, event: BaseEntry) -> None:
        if not self._console.quiet:
            with self._dropping():
                self._view(event)

    def tick(self) -> None:
        """Some time has passed."""
        if not self._console.quiet:
            with self._dropping():
                self._view.tick()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The terminal is free in the block."""
        if self._console.quiet:
            yield
            return
        with self._view.paused():
            yield

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # a pipe without a reader, a terminal that was closed
            self._console.on_broken_pipe()


class Screen:
    """The screen on which a search is watched: takes its events, and makes room for a question."""

    def __init__(self, observers: Sequence[Observer], view: _View) -> None:
        self._observers = (*observers, view)
        self.paused = view.paused

    def __call__(self, event: BaseEntry) -> None:
        """Hand an event on."""
        for observer in self._observers:
            observer(event)


async def _tick(*observers: _Log | _View) -> None:
    """Let time pass for them: a search that waits has no entries."""
    while True:
        await asyncio.sleep(TICK_S)
        for observer in observers:
            observer.tick()


@contextmanager
def _cancelled_by_signals(task: asyncio.Task[Any]) -> Iterator[None]:
    """Have `STOP_SIGNALS` cancel the task. Where its event loop is held up for `LONGEST_HOLD_UP_S`
    after one, interrupt what holds it up."""
    loop = asyncio.get_running_loop()
    interrupted = False
    """The task was, and cleans up: to cancel it once more would keep it from that."""

    def cancel() -> None:
        nonlocal interrupted
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not interrupted:
            task.cancel()
        interrupted = False

    def stop(number: int, frame: object) -> None:
        nonlocal interrupted
        if number == signal.SIGALRM:
            interrupted = asyncio.current_task(loop) is task
            raise asyncio.CancelledError
        signal.setitimer(signal.ITIMER_REAL, LONGEST_HOLD_UP_S)
        loop.call_soon_threadsafe(cancel)

    # `nohup` has a closed terminal ignored
    numbers = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in (*numbers, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(work: Callable[[Screen], Coroutine[Any, Any, Run]], output_format: str) -> Run:
    """Run a search and show it. Ctrl-C stops it; the run's folder then says how to go on. Exit
    status 130 after that."""
    from eureka_agent.report.tables import render_end
    from eureka_agent.search.summary import run_report

    console = LastingConsole(stderr=output_format == "json")
    log, folder = _Log(), _Folder()

    async def run() -> Run:
        main = asyncio.current_task()
        assert main is not None  # this is a coroutine of asyncio.run
        with _cancelled_by_signals(main), _View(console) as view:
            ticking = asyncio.create_task(_tick(log, view))
            try:
                return await work(Screen((log, folder), view))
            finally:
                ticking.cancel()

    try:
        finished = asyncio.run(run())
    except (asyncio.CancelledError, KeyboardInterrupt):
        if folder.path is not None:
            with suppress(OSError):  # the terminal may be what has gone
                say(
                    f"Stopped. Go on with:  {resume_command(folder.path)}",
                    err=output_format == "json",
                )
        raise click.exceptions.Abort from None
    if output_format == "json":
        from eureka_agent.report.as_json import to_json

        print_json(to_json(run_report(finished)))
    else:
        console.print(render_end(run_report(finished)))
    return finished


def follow(folder: Path) -> None:
    """Show a run that another process works on until it ends. Ctrl-C ends this alone. Exit status
    130 after that."""
    from eureka_agent.archive.run_folder import open_run
    from eureka_agent.report.follow import Follower, RunClock
    from eureka_agent.report.tables import render_end
    from eureka_agent.search.summary import run_overview

    open_run(folder, reading=True).archive.close()  # says what is wrong with the folder
    console, clock = LastingConsole(), RunClock()

    async def run() -> None:
        main = asyncio.current_task()
        assert main is not None  # this is a coroutine of asyncio.run
        with _cancelled_by_signals(main), _View(console, clock) as view:
            ticking = asyncio.create_task(_tick(view))
            try:
                await Follower(folder, view, clock).follow()
            finally:
                ticking.cancel()

    try:
        asyncio.run(run())
    except (asyncio.CancelledError, KeyboardInterrupt):
        with suppress(OSError):
            say("No longer watched; the search goes on.")
        raise click.exceptions.Abort from None
    ended = open_run(folder, reading=True)
    with closing(ended.archive):
        if ended.status is RunStatus.FINISHED:
            console.print(render_end(run_overview(ended)))
            return
        say(f"Nobody works on this run: it is {ended.status.value}.")
        say(f"See it with:   {command(shlex.join(['show', str(folder)]))}")
        say(f"Go on with:    {resume_command(folder)}")
