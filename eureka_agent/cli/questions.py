"""Questions to a person: if a written fitness is taken, and if another person's run folder may
decide about code, walls and keys."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import click

from eureka_agent.archive.run_folder import Run
from eureka_agent.cli.command import DeclinedError
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import show_command
from eureka_agent.records import Verdict, WrittenFitness
from eureka_agent.search.trust import (
    ForeignRunError,
    check_to_evaluate,
    check_to_film,
    check_to_resume,
)
from eureka_agent.search.written_fitness import Acceptance, Confirm, nobody_to_ask
from eureka_agent.text import printable


async def line(prompt: str = "", *, on_stderr: bool = False) -> str | None:
    """A line without its end; None at the end of the input. `input` would block the loop, which
    handles Ctrl-C."""
    if prompt:
        click.echo(prompt, nl=False, err=on_stderr)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(sys.stdin, readable.set)
    except PermissionError:  # a file, which keeps nobody waiting
        readable.set()
    try:
        await readable.wait()
    finally:
        with suppress(ValueError, OSError):
            loop.remove_reader(sys.stdin)
    text = sys.stdin.readline()
    return text.rstrip("\r\n") if text else None


async def is_yes(question: str, *, on_stderr: bool = False) -> bool:
    """True for a yes; the end of the input means no."""
    while True:
        answer = (await line(f"{question} [y/N] ", on_stderr=on_stderr) or "").strip().lower()
        if answer in ("y", "yes"):
            return True
        if answer in ("", "n", "no"):
            return False
        click.echo("y or n, please", err=on_stderr)


def agree(question: str, unasked: EurekaError, declined: str, hint: str = "") -> None:
    """Ask on standard error. Raises `unasked` where no terminal is there, and DeclinedError, with
    these words, for a no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise unasked
    if not click.confirm(printable(question), default=False, err=True):
        raise DeclinedError(declined, hint)


QUESTION = "Take this fitness for the run?"


def confirmation(
    yes: bool, output_format: str, paused: Callable[[], AbstractContextManager[object]]
) -> Confirm:
    """Function that asks for consent. `yes`: do not ask; `paused`: frees the terminal."""

    async def confirm(fitness: WrittenFitness, verdict: Verdict, kept: Path) -> Acceptance | None:
        from rich.text import Text

        from eureka_agent.report.attempt_page import finding_lines
        from eureka_agent.report.sections import fitness_blocks
        from eureka_agent.report.terminal import CleanConsole, panel, render_block

        on_stderr = output_format == "json" or not sys.stdout.isatty()
        output = sys.stderr if on_stderr else sys.stdout
        if not yes and not (sys.stdin.isatty() and output.isatty()):
            raise nobody_to_ask(fitness, kept)
        with paused():
            console = CleanConsole(stderr=on_stderr)
            console.print(
                *(part for each in fitness_blocks(fitness) for part in render_block(each))
            )
            if verdict.findings:
                title = "what the critic remarks (it calls it a reward)"
                console.print(
                    panel(Text("\n".join(finding_lines(verdict.findings))), title, "yellow")
                )
            if yes:
                return "accepted by --yes at the start"
            accepted = await is_yes(QUESTION, on_stderr=on_stderr)
            return "accepted by a person at the start" if accepted else None

    return confirm


def trust_to_evaluate(run: Run, trust: bool) -> None:
    """Ask before a policy is scored, each time. Raises EurekaError without a yes."""
    _trust(run, trust, check_to_evaluate)


def trust_to_film(run: Run, trust: bool) -> None:
    """Ask before episodes of `run` are played, and its rewards run for the lines below them."""
    _trust(run, trust, check_to_film)


def trust_to_resume(run: Run, trust: bool) -> None:
    """Ask before `run` is resumed, and signed as the user's own: its models are asked, too."""
    _trust(run, trust, check_to_resume)


def _trust(run: Run, trust: bool, check: Callable[[Run], None]) -> None:
    try:
        if not trust:
            check(run)
    except ForeignRunError as foreign:
        only_reads = f"`{show_command(run.folder)}` only reads it"
        agree(foreign.question, foreign, "not trusted, and nothing was run", only_reads)
