"""Runs of other persons: a run folder may decide about code, walls and keys, so its user is asked
before anything of it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.signature import why_no_secret
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import show_command
from eureka_agent.llm.access import shown_address
from eureka_agent.llm.program import COMMAND
from eureka_agent.llm.replay import REPLAY
from eureka_agent.sandbox.choose import AUTO, WALL_VARIABLE, WALLS
from eureka_agent.sandbox.client import built_in_folder, environment_folder
from eureka_agent.search.models import OFF
from eureka_agent.search.resumption import is_own
from eureka_agent.settings import SearchSettings, judge_of


class ForeignRunError(EurekaError):
    """A run that is not the user's own, which nobody has trusted. Nothing was run."""

    def __init__(self, run: Run, would: Sequence[str]) -> None:
        """`would` names all that it would run and send."""
        why = (
            "it was made by somebody else, or before runs were signed, or where it could not be"
            " signed, or its settings were edited"
        )
        if without_secret := why_no_secret():
            why = f"none can be known as yours here: {without_secret}"
        what = f"the run {str(run.folder)!r} is not your own ({why})"
        super().__init__(
            f"{what}, and this would {'; '.join(would)}",
            f"look at it with `{show_command(run.folder)}`; if you trust who made it, give the same"
            " command with --trust",
        )
        self.question = "\n  - ".join([f"{what}. This would", *would]) + "\nGo on?"


def check_to_evaluate(run: Run) -> None:
    """Raise ForeignRunError where a policy of `run` cannot be scored unasked."""
    _check(run, attempts=False)


def check_to_film(run: Run) -> None:
    """The same for episodes with the rewards' lines below them."""
    _check(run, f"run the reward functions in it, behind the wall {run.settings.sandbox!r}")


def check_to_resume(run: Run) -> None:
    """The same for a resumed run, whose models are asked, too."""
    rewards = f"train the reward functions in it, behind the wall {run.settings.sandbox!r}"
    _check(run, rewards, *_cluster(run.settings), *_models(run.settings))


def _check(run: Run, *acts: str, attempts: bool = True) -> None:
    would = [*_wall(run.settings), *_code(run), *acts]
    if would and not is_own(run, attempts=attempts):
        raise ForeignRunError(run, would)


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
