"""Asks before a run folder that this user's program did not write decides about code, walls or
keys."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable

import click

from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.signature import why_no_secret
from eureka_agent.cli.output import say
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command
from eureka_agent.llm.access import shown_address
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.choose import AUTO, WALL_VARIABLE, WALLS
from eureka_agent.sandbox.client import environment_folder
from eureka_agent.search.models import OFF, REPLAY
from eureka_agent.settings import SearchSettings


class UntrustedRunError(EurekaError):
    """A run of somebody else's that asks for more than to be read, and nobody who could be
    asked."""


class NotTrustedError(EurekaError):
    """A person was asked and said no. Nothing was run."""

    exit_status = 1


def trust_to_evaluate(run: Run, trust: bool) -> None:
    """Have the user agree to what scoring a policy of `run` would run. Nothing is signed: the next
    evaluation asks again.

    Raises UntrustedRunError without a terminal to ask at, NotTrustedError for a no.
    """
    if not (trust or _is_own(run, attempts=False)):
        _ask(run, [*_wall(run.settings), *_code(run)])


def trust_to_resume(run: Run, trust: bool) -> None:
    """The same for going on with it: its rewards are trained, its models asked. The program writes
    it then, and signs it as the user's own."""
    if not (trust or _is_own(run, attempts=True)):
        rewards = f"train the reward functions in it, behind the wall {run.settings.sandbox!r}"
        _ask(run, [*_wall(run.settings), *_code(run), rewards, *_models(run.settings)])


def _is_own(run: Run, *, attempts: bool) -> bool:
    """An environment in the run folder came with the folder, whoever signed what the settings
    are."""
    environment = environment_folder(run.settings.env)
    if environment is not None and environment.is_relative_to(run.folder.resolve()):
        return False
    return run.is_own(attempts=attempts)


def _ask(run: Run, would: list[str]) -> None:
    if not would:
        return
    without_secret = why_no_secret()
    why = (
        f"none can be known as yours here: {without_secret}"
        if without_secret
        else (
            "it was made by somebody else, or before runs were signed, or where it could not be"
            " signed, or its settings were edited"
        )
    )
    what = f"the run {str(run.folder)!r} is not your own ({why})"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UntrustedRunError(
            f"{what}, and this would {'; '.join(would)}",
            f"look at it with `{_show(run)}`; if you trust who made it, give the same command with"
            " --trust",
        )
    say("\n  - ".join([f"{what}. This would", *would]), err=True)
    if not click.confirm("Go on?", default=False, err=True):
        raise NotTrustedError("not trusted, and nothing was run", f"`{_show(run)}` only reads it")


def _show(run: Run) -> str:
    return command(shlex.join(["show", str(run.folder)]))


def _wall(settings: SearchSettings) -> Iterable[str]:
    """The folder's wall, where it may be weaker than what this user has without it."""
    own = os.environ.get(WALL_VARIABLE) or AUTO
    strongest = WALLS.index(own) if own in WALLS else 0
    if settings.sandbox != AUTO and WALLS.index(settings.sandbox) > strongest:
        yield f"use the wall {settings.sandbox!r} that it names, in place of your own, {own!r}"


def _code(run: Run) -> Iterable[str]:
    """Code that it brings beside rewards and policies. A built-in environment is this program's
    own."""
    environment = run.settings.env
    folder = environment_folder(environment)
    if folder is not None or not (resource_folder("envs") / environment / "env.py").is_file():
        where = environment if folder is None else str(folder)
        yield f"run the environment {where!r} behind the wall {run.settings.sandbox!r}"
    if run.written_fitness is not None:
        yield f"run the fitness function in it behind the wall {run.settings.sandbox!r}"


def _models(settings: SearchSettings) -> Iterable[str]:
    """Models that it asks, where, and with which key."""
    named = (
        *settings.model,
        *(name for name in (settings.reviewer, settings.analyst) if "/" in name),
    )
    own_server = settings.model[0].partition("/")[0] if settings.base_url else None
    for name in dict.fromkeys(named):
        if name in ("offline", OFF) or name.startswith(REPLAY):
            continue
        provider = name.partition("/")[0]
        address = (
            shown_address(settings.base_url)
            if settings.base_url and provider == own_server
            else f"{provider}'s"
        )
        yield f"ask the model {name!r} at {address}, with the key in {_key_variable(provider)}"


def _key_variable(provider: str) -> str:
    """The variables that are named after a provider, of which its library takes a key; the usual
    one where none is set."""
    start = "".join(character for character in provider.upper() if character.isalnum())
    found = [
        name
        for name in os.environ
        if name.upper().replace("_", "").startswith(start) and "KEY" in name.upper()
    ]
    return " or ".join(sorted(found)) or f"{provider.upper()}_API_KEY (which is not set)"
