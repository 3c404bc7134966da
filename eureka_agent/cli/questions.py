"""Questions to a person: if a written fitness is taken, and if another person's run folder may
decide about code, walls and keys."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import click

from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.signature import why_no_secret
from eureka_agent.cli.command import DeclinedError
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import show_command
from eureka_agent.llm.access import shown_address
from eureka_agent.llm.program import COMMAND
from eureka_agent.llm.replay import REPLAY
from eureka_agent.records import Verdict, WrittenFitness
from eureka_agent.sandbox.choose import AUTO, WALL_VARIABLE, WALLS
from eureka_agent.sandbox.client import built_in_folder, environment_folder
from eureka_agent.search.models import OFF
from eureka_agent.search.resumption import is_own
from eureka_agent.search.written_fitness import FITNESS_SOURCE, Acceptance, Confirm
from eureka_agent.settings import SearchSettings, judge_of
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
            raise EurekaError(
                f"{fitness.author} wrote a fitness, and there is no terminal to ask whether it is"
                " taken",
                f"read {str(kept / FITNESS_SOURCE)!r}, then give the same command with --yes: it is"
                " not written again",
            )
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
    _trust(run, trust, attempts=False)


def trust_to_film(run: Run, trust: bool) -> None:
    """Ask before episodes of `run` are played, and its rewards run for the lines below them."""
    _trust(run, trust, f"run the reward functions in it, behind the wall {run.settings.sandbox!r}")


def trust_to_resume(run: Run, trust: bool) -> None:
    """Ask before `run` is resumed, and signed as the user's own: its models are asked, too."""
    rewards = f"train the reward functions in it, behind the wall {run.settings.sandbox!r}"
    _trust(run, trust, rewards, *_cluster(run.settings), *_models(run.settings))


def _trust(run: Run, trust: bool, *acts: str, attempts: bool = True) -> None:
    would = [*_wall(run.settings), *_code(run), *acts]
    if trust or not would or is_own(run, attempts=attempts):
        return
    why = (
        "it was made by somebody else, or before runs were signed, or where it could not be"
        " signed, or its settings were edited"
    )
    if without_secret := why_no_secret():
        why = f"none can be known as yours here: {without_secret}"
    what = f"the run {str(run.folder)!r} is not your own ({why})"
    show = show_command(run.folder)
    unasked = EurekaError(
        f"{what}, and this would {'; '.join(would)}",
        f"look at it with `{show}`; if you trust who made it, give the same command with --trust",
    )
    question = "\n  - ".join([f"{what}. This would", *would]) + "\nGo on?"
    agree(question, unasked, "not trusted, and nothing was run", f"`{show}` only reads it")


def _wall(settings: SearchSettings) -> Iterable[str]:
    """The folder's wall, where it may be weaker than the user's."""
    own = os.environ.get(WALL_VARIABLE) or AUTO
    strongest = WALLS.index(own) if own in WALLS else 0
    if settings.sandbox != AUTO and WALLS.index(settings.sandbox) > strongest:
        yield f"use the wall {settings.sandbox!r} that it names, in place of your own, {own!r}"


def _code(run: Run) -> Iterable[str]:
    """Code beside rewards and policies; a built-in environment is this program's own."""
    environment = run.settings.env
    folder = environment_folder(environment)
    if folder is not None or built_in_folder(environment) is None:
        where = environment if folder is None else str(folder)
        yield f"run the environment {where!r} behind the wall {run.settings.sandbox!r}"
    if run.written_fitness is not None:
        yield f"run the fitness function in it behind the wall {run.settings.sandbox!r}"


def _cluster(settings: SearchSettings) -> Iterable[str]:
    if settings.cluster != OFF:
        where = settings.cluster.partition(":")[2] or "that this machine is part of"
        yield f"join the Ray cluster {where}, whose machines Ray trusts, and train there"


def _models(settings: SearchSettings) -> Iterable[str]:
    named = (settings.reviewer, settings.analyst, judge_of(settings))
    advisers = (name for name in named if "/" in name or name.startswith(COMMAND))
    own_server = settings.model[0].partition("/")[0] if settings.base_url else None
    for name in dict.fromkeys((*settings.model, *advisers)):
        if name.startswith(REPLAY):
            yield f"take replies from the run {name.removeprefix(REPLAY)!r}"
        if name in ("offline", OFF) or name.startswith(REPLAY):
            continue
        if name.startswith(COMMAND):
            yield f"run the program {name.removeprefix(COMMAND)!r} without a wall"
            continue
        provider = name.partition("/")[0]
        address = f"{provider}'s"
        if settings.base_url and provider == own_server:
            address = shown_address(settings.base_url)
        key = f"{provider.upper()}_API_KEY"
        yield f"ask the model {name!r} at {address}, with the key in {key}"
