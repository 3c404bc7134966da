"""A search in the foreground: shows it, stops it cleanly on Ctrl-C, prints its result."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from eureka_agent.archive.run_folder import Run
from eureka_agent.cli.output import print_json, say
from eureka_agent.invocation import resume_command, show_command
from eureka_agent.records import RunStatus
from eureka_agent.report.live import LogFile
from eureka_agent.report.screen import LastingConsole, Screen, shown

ResultT = TypeVar("ResultT")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_HOLD_UP_S = 2.0
"""Seconds that a stop waits for a step of the search that blocks the event loop."""


@contextmanager
def _cancelled_by_signals(task: asyncio.Task[Any]) -> Iterator[None]:
    """Let `STOP_SIGNALS` cancel the task. If its event loop is blocked for `LONGEST_HOLD_UP_S`, the
    blocking step is interrupted."""
    loop = asyncio.get_running_loop()
    interrupted = False
    """True after that: the task cleans up already, which a cancellation would stop."""

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

    # `nohup` ignores a closed terminal
    numbers = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in (*numbers, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(
    work: Callable[[Screen], Coroutine[Any, Any, Run]],
    output_format: str,
    *,
    silent_end: bool = False,
) -> Run:
    """Run a search and show it. Ctrl-C stops it with exit status 130. `silent_end`: the result is
    not printed."""
    from eureka_agent.report.tables import render_end
    from eureka_agent.search.summary import run_report

    console = LastingConsole(stderr=output_format == "json")
    screen = Screen(console, LogFile())
    try:
        finished = run_stoppable(lambda: shown(lambda: work(screen), screen))
    except KeyboardInterrupt:
        if screen.folder is not None:
            with suppress(OSError):  # the terminal may be gone
                stopped = f"Stopped. Go on with:  {resume_command(screen.folder)}"
                say(stopped, err=output_format == "json")
        raise click.exceptions.Abort from None
    if silent_end:
        return finished
    if output_format == "json":
        from eureka_agent.report.as_json import to_json

        print_json(to_json(run_report(finished)))
    else:
        console.print(render_end(run_report(finished)))
    return finished


def run_stoppable(work: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run a coroutine until it ends or a signal cancels it. Raises KeyboardInterrupt then."""

    async def run() -> ResultT:
        main = asyncio.current_task()
        assert main is not None  # this is a coroutine of asyncio.run
        with _cancelled_by_signals(main):
            return await work()

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def follow(folder: Path) -> None:
    """Show a run of another process until it ends. Ctrl-C ends only this, with exit status 130."""
    from eureka_agent.archive.run_folder import open_run
    from eureka_agent.report.follow import Follower
    from eureka_agent.report.tables import render_end
    from eureka_agent.search.summary import run_overview

    open_run(folder, reading=True).archive.close()  # raises for a damaged folder
    console = LastingConsole()
    screen = Screen(console)
    try:
        run_stoppable(lambda: shown(Follower(folder, screen).follow, screen))
    except KeyboardInterrupt:
        with suppress(OSError):
            say("No longer watched; the search goes on.")
        raise click.exceptions.Abort from None
    ended = open_run(folder, reading=True)
    with closing(ended.archive):
        if ended.status is RunStatus.FINISHED:
            console.print(render_end(run_overview(ended)))
            return
        say(f"Nobody works on this run: it is {ended.status.value}.")
        say(f"See it with:   {show_command(folder)}")
        say(f"Go on with:    {resume_command(folder)}")
