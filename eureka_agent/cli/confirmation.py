"""Question to the person whether a search takes a written fitness."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import click

from eureka_agent.errors import EurekaError
from eureka_agent.records import Verdict, WrittenFitness
from eureka_agent.search.written_fitness import FITNESS_SOURCE, Acceptance, Confirm

QUESTION = "Take this fitness for the run? [y/N] "


class NoTerminalError(EurekaError):
    """A fitness to confirm without a terminal."""


def confirmation(
    yes: bool, output_format: str, paused: Callable[[], AbstractContextManager[object]]
) -> Confirm:
    """Function that asks for consent. `yes`: do not ask; `paused`: frees the terminal."""

    async def confirm(fitness: WrittenFitness, verdict: Verdict, kept: Path) -> Acceptance | None:
        from eureka_agent.report.console import CleanConsole
        from eureka_agent.report.fitness import render_fitness

        on_stderr = output_format == "json" or not sys.stdout.isatty()
        output = sys.stderr if on_stderr else sys.stdout
        if not yes and not (sys.stdin.isatty() and output.isatty()):
            raise NoTerminalError(
                f"{fitness.author} wrote a fitness, and there is no terminal to ask whether it is"
                " taken",
                f"read {str(kept / FITNESS_SOURCE)!r}, then give the same command with --yes: it is"
                " not written again",
            )
        with paused():
            CleanConsole(stderr=on_stderr).print(render_fitness(fitness, verdict))
            if yes:
                return "accepted by --yes at the start"
            return "accepted by a person at the start" if await _asked(on_stderr) else None

    return confirm


async def _asked(on_stderr: bool) -> bool:
    """True for a yes; the end of the input means no."""
    while True:
        click.echo(QUESTION, nl=False, err=on_stderr)
        answer = (await _line()).strip().lower()
        if answer in ("y", "yes"):
            return True
        if answer in ("", "n", "no"):
            return False
        click.echo("y or n, please", err=on_stderr)


async def _line() -> str:
    """A line from the terminal. `input` would block the loop, which handles Ctrl-C."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        loop.remove_reader(sys.stdin)
        if not line.done():
            line.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, read)
    try:
        return await line
    finally:
        loop.remove_reader(sys.stdin)
