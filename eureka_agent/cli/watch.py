"""Runs a search in the foreground: shows it, stops it cleanly on Ctrl-C, prints what came of it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from eureka_agent.archive.run_folder import Run
from eureka_agent.report.events import Event, Observer, RunEnded, RunStarted


class _Log:
    """Writes the plain lines of the events into the run's own log, from the first event on."""

    def __init__(self) -> None:
        self._observer: Observer | None = None
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        from rich.console import Console

        from eureka_agent.report.plain import PlainLog

        if isinstance(event, RunStarted) and self._handle is None:
            with suppress(OSError):  # a log that cannot be written must not stop a search
                self._handle = (event.run_folder / "log.txt").open("a")
                self._observer = PlainLog(Console(file=self._handle, width=160, no_color=True))
        if self._observer is not None:
            with suppress(OSError):
                self._observer(event)
                self._handle.flush()
        if isinstance(event, RunEnded) and self._handle is not None:
            with suppress(OSError):
                self._handle.close()


def watch(work: Callable[[Observer], Coroutine[Any, Any, Run]], output_format: str) -> Run:
    """Run a search and show it. Ctrl-C stops it; the run's folder then says how to go on. Exit status 130 after that."""
    from rich.console import Console

    from eureka_agent.report.live import progress_view
    from eureka_agent.report.tables import render_end
    from eureka_agent.search.summary import run_report

    console = Console(stderr=output_format == "json")
    log, folder = _Log(), _Folder()

    async def run() -> Run:
        main = asyncio.current_task()
        assert main is not None  # this is a coroutine of asyncio.run
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, main.cancel)
        with progress_view(console) as view:

            def observer(event: Event) -> None:
                log(event)
                folder(event)
                view(event)

            return await work(observer)

    try:
        finished = asyncio.run(run())
    except (asyncio.CancelledError, KeyboardInterrupt):
        if folder.path is not None:
            console.print(f"Stopped. Go on with:  eureka resume {folder.path}", highlight=False)
        raise click.exceptions.Abort from None
    if output_format == "json":
        from eureka_agent.archive.run_folder import dump_json
        from eureka_agent.report.as_json import to_json

        click.echo(dump_json(to_json(run_report(finished))), nl=False)
    else:
        console.print(render_end(run_report(finished)))
    return finished


class _Folder:
    """Remembers the run's folder."""

    def __init__(self) -> None:
        self.path: Path | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self.path = event.run_folder
