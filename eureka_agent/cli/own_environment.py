"""`eureka envs --new` and `--measure`: a template of an environment, and the difficulty cards of
its tasks."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eureka_agent.cards import card_path
from eureka_agent.cli.command import UsageError
from eureka_agent.cli.interruption import foreign_code
from eureka_agent.cli.output import print_json, say
from eureka_agent.invocation import command

if TYPE_CHECKING:
    from eureka_agent.cards import Card

KINDS = ("torch", "mujoco", "gymnasium", "command")


def new_environment(folder: Path, kind: str | None, output_format: str) -> None:
    """Write a template and print the next steps. Raises EnvironmentLoadError."""
    from eureka_agent.simulation.catalogue import write_new_environment

    if kind is None:
        kinds = "|".join(KINDS)
        raise UsageError("--new was given without --kind", f"name the kind: --kind {kinds}")
    files = write_new_environment(folder, kind)
    if output_format == "json":
        print_json({"folder": str(folder), "kind": kind, "files": [str(path) for path in files]})
        return
    for path in files:
        say(f"  {path}")
    # a bare name would be a built-in environment
    place = shlex.quote(str(folder) if "/" in str(folder) else f"./{folder}")
    begin = "It works as it is; lines to change are marked CHANGE. Then:\n"
    if kind == "command":
        begin = "Name your simulator's Python in command.yaml; lines to change are marked CHANGE."
        begin += " Then:\n"
    say(begin + f"  {command(f'envs --check {place}')}\n  {command(f'search --env {place}')}")


def measure_tasks(
    reference: str,
    task: str | None,
    seeds: int,
    env_steps: int | None,
    device: str,
    output_format: str,
) -> None:
    """Train the human and the sparse reward of each task, or of one, and write its card into the
    environment's folder. `env_steps` of a training; None: the task's budget. Raises EurekaError."""
    from eureka_agent.archive.files import write_text
    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.cli.watch import watch
    from eureka_agent.report.environment import render_card
    from eureka_agent.report.terminal import CleanConsole
    from eureka_agent.search.card import card_of
    from eureka_agent.search.session import start

    folder, tasks = _tasks(reference, task)
    cards: dict[str, Card] = {}
    for name in tasks:
        values = {
            "env": reference,
            "task": name,
            "iterations": 0,
            "final_seeds": seeds,
            "device": device,
            "video": False,
            **({} if env_steps is None else {"env_steps": env_steps}),
        }
        try:
            begin = partial(start, values, None, command_line())
            run = watch(begin, output_format, silent_end=True)
        except click.exceptions.Abort:
            again = "Then run this again: it makes the card of what is trained, which it keeps."
            say(again, err=output_format == "json")
            raise
        card = cards[name] = card_of(run)
        if folder is not None:
            write_text(card_path(folder, name), card.model_dump_json(indent=1) + "\n")
        if output_format == "text":
            CleanConsole().print(render_card(card))
            if folder is not None:
                say(f"card: {card_path(folder, name)}\n")
    if output_format == "json":
        print_json({"cards": {name: card.model_dump(mode="json") for name, card in cards.items()}})


def _tasks(reference: str, task: str | None) -> tuple[Path | None, list[str]]:
    """The environment's folder, if it has one, and the tasks to measure."""
    from eureka_agent.simulation.loading import load_environment

    with foreign_code():
        loaded = load_environment(reference)
    return loaded.folder, list(loaded.tasks) if task is None else [loaded.task(task)[0]]
