"""`eureka envs`: list of environments, the variables of one, a check of your own, a template."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from eureka_agent.cards import CARD_SEEDS, read_card
from eureka_agent.cli import completing
from eureka_agent.cli.command import Command, NamedChoice, Number, UsageError
from eureka_agent.cli.interruption import foreign_code
from eureka_agent.cli.output import FORMAT, print_json, said_if_slow, wrapped
from eureka_agent.cli.own_environment import KINDS, measure_tasks, new_environment
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import pasteable
from eureka_agent.settings import DAY_SECONDS, MOST_ENV_STEPS
from eureka_agent.wording import plural

if TYPE_CHECKING:
    from eureka_agent.cards import Card
    from eureka_agent.training.conformance import CheckObserver, CheckResult


_SLOW = (
    "reading {}: it is made, plays some random steps and is reset often; a slow one takes minutes"
)


class NonconformingError(EurekaError):
    """An environment that breaks the contract; its findings are printed already."""

    exit_status = 1


@click.command(cls=Command)
@click.argument("environment", required=False, shell_complete=completing.environments)
@click.option(
    "--check", metavar="PATH", help="Check that the environment at PATH keeps the contract."
)
@click.option(
    "--time-limit",
    type=Number(float, 0.1, DAY_SECONDS),
    metavar="SECONDS",
    help="Time that one check of --check may take: 60, or 1200 for a command, whose simulator may"
    " compile.",
)
@click.option(
    "--measure",
    metavar="PATH",
    help="Train the human and the sparse reward of the environment at PATH, and write the"
    " difficulty card of each task.",
)
@click.option(
    "--seeds",
    type=Number(int, 3, 1000),
    default=CARD_SEEDS,
    show_default=True,
    help="Trainings of each reward for --measure.",
)
@click.option(
    "--env-steps",
    type=Number(int, 1, MOST_ENV_STEPS),
    help="Env steps of a training for --measure.  [default: the task's budget]",
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="Device of the trainings for --measure: auto, cpu, cuda or cuda:<number>.",
)
@click.option(
    "--new",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write a template of your own to FOLDER.",
)
@click.option("--kind", type=NamedChoice(KINDS), help="Kind of template that --new writes.")
@click.option(
    "--task",
    help="Task to show, check or measure; default: the first one (shown), every one (else).",
)
@FORMAT
def envs(
    environment: str | None,
    check: str | None,
    time_limit: float | None,
    measure: str | None,
    seeds: int,
    env_steps: int | None,
    device: str,
    new: Path | None,
    kind: str | None,
    task: str | None,
    output_format: str,
) -> None:
    """List the built-in environments, show the variables of ENVIRONMENT, check or measure one of
    your own, or begin a new one.

    \b
    eureka envs
    eureka envs ant
    eureka envs --check path/to/my_env
    eureka envs --measure path/to/my_env
    eureka envs --new path/to/my_env --kind torch
    """
    actions = {"ENVIRONMENT": environment, "--check": check, "--measure": measure, "--new": new}
    given = [name for name, value in actions.items() if value is not None]
    if len(given) > 1:
        *first, last = given
        raise UsageError(f"{', '.join(first)} and {last} were given together", "give one of them")
    if kind is not None and new is None:
        hint = f"name the folder: --new my_env --kind {kind}"
        raise UsageError("--kind was given without --new", hint)
    if new is not None:
        new_environment(new, kind, output_format)
    elif check is not None:
        _check(check, task, time_limit, output_format)
    elif measure is not None:
        measure_tasks(measure, task, seeds, env_steps, device, output_format)
    elif environment is not None:
        _show(environment, task, output_format)
    else:
        _list(output_format)


def _cards(
    folder: Path, rewards: Mapping[str, Collection[str]]
) -> tuple[dict[str, Card | None], list[str]]:
    """Cards by task, and the tasks whose files have changed since. `rewards`: paths by task."""
    from eureka_agent.environment_files import fingerprint_of, relevant_files

    cards = {name: read_card(folder, name) for name in rewards}
    outdated = [
        name
        for name, card in cards.items()
        if card is not None
        and card.fingerprint != fingerprint_of(relevant_files(folder, name, rewards[name]))
    ]
    return cards, outdated


def _cards_as_json(cards: Mapping[str, Card | None], outdated: list[str]) -> dict[str, object]:
    dumped = {
        name: None if card is None else card.model_dump(mode="json") for name, card in cards.items()
    }
    return {"cards": dumped, "outdated_cards": outdated}


def _list(output_format: str) -> None:
    from eureka_agent.simulation.catalogue import list_environments

    entries = {entry.name: entry for entry in list_environments()}
    found = {
        name: _cards(entry.folder, {task: entry.rewards[task] for task in entry.tasks})
        for name, entry in entries.items()
    }
    if output_format == "json":
        documents = [
            {
                "name": name,
                "doc": entry.doc,
                "tasks": dict(entry.tasks),
                **_cards_as_json(*found[name]),
            }
            for name, entry in entries.items()
        ]
        print_json({"environments": documents})
        return
    from eureka_agent.report.environment import render_environments
    from eureka_agent.report.terminal import list_console

    sentences = {name: entry.tasks for name, entry in entries.items()}
    cards = {name: of_tasks for name, (of_tasks, _) in found.items()}
    outdated = {name: old for name, (_, old) in found.items()}
    list_console().print(render_environments(sentences, cards, outdated), highlight=False)


def _show(environment: str, task: str | None, output_format: str) -> None:
    from eureka_agent.simulation.loading import describe, load_environment
    from eureka_agent.simulation.rollouts import measure_starts

    with foreign_code(), said_if_slow(_SLOW.format(environment)):
        loaded = load_environment(environment)
        name, found = loaded.task(task)
        description = describe(loaded, name)
        with suppress(EurekaError):  # `--check` reports a fault
            description = description.model_copy(update={"measured": measure_starts(loaded, found)})
    cards: dict[str, Card | None] = dict.fromkeys(loaded.tasks)
    outdated: list[str] = []
    if loaded.folder is not None:
        rewards = {each: loaded.tasks[each].rewards for each in loaded.tasks}
        cards, outdated = _cards(loaded.folder, rewards)
    if output_format == "json":
        document = description.model_dump(mode="json")
        print_json({**document, **_cards_as_json(cards, outdated)})
        return
    from eureka_agent.report.environment import render_card, render_cards, render_environment
    from eureka_agent.report.terminal import CleanConsole

    console = CleanConsole()
    console.print(render_environment(description, tuple(loaded.tasks)))
    card = cards[name]
    if card is not None and (task is not None or len(cards) == 1):
        console.print("", render_card(card, description.fingerprint), sep="\n")
    elif loaded.folder is not None:
        chosen = cards if task is None else {name: None}
        console.print("", render_cards(chosen, outdated, environment), sep="\n", highlight=False)


def _check(reference: str, task: str | None, limit_s: float | None, output_format: str) -> None:
    from eureka_agent.boundary.bounds import OPENING_SECONDS
    from eureka_agent.command_file import is_command
    from eureka_agent.simulation.catalogue import GYMNASIUM_PREFIX, find_folder
    from eureka_agent.training.conformance import LIMIT_SECONDS, check_environment

    may_compile = False
    if not reference.startswith(GYMNASIUM_PREFIX):
        may_compile = is_command(find_folder(reference))  # raises for one that does not exist
    limit_s = limit_s or (OPENING_SECONDS if may_compile else LIMIT_SECONDS)
    as_json = output_format == "json"
    with foreign_code() as out:
        progress = _progress(as_json, out)
        results = check_environment(reference, task, limit_s=limit_s, observer=progress)
    if as_json:
        print_json({"checks": [{**asdict(each), "passed": each.passed} for each in results]})
    severities = [each.severity for each in results]
    counts = {severity: severities.count(severity) for severity in ("warning", "error")}
    found = " and ".join(plural(count, severity) for severity, count in counts.items() if count)
    checks = plural(len(results), "check")
    if counts["error"]:
        raise NonconformingError(
            f"{found} in {checks} of {reference!r}",
            "mend the first error first: others may follow from it, and what trains is tried when"
            " there is none",
        )
    if not as_json:
        told = ", ".join(filter(None, (checks, found)))
        click.echo(f"{reference} keeps the contract: {told}")


def _progress(silent: bool, out: TextIO) -> CheckObserver:
    """Observer that prints results like a linter's, and the names of slow checks."""
    from eureka_agent.text import printable
    from eureka_agent.training.conformance import CheckObserver

    colours = {"ok": "green", "warning": "yellow", "error": "red"}

    class Lines(CheckObserver):
        """Prints each result; `silent`: only progress, on standard error."""

        task = ""
        slow = ExitStack()

        def begins(self, task: str, name: str, seconds: float) -> None:
            self.slow.close()
            if task != self.task and not silent:
                click.secho(f"task {task}", bold=True, file=out)
                self.task = task
            if seconds:
                click.echo(f"   … {name} (about {seconds:g} s)", err=True)
            else:
                self.slow.enter_context(said_if_slow(f"   … {name}"))

        def ends(self, result: CheckResult) -> None:
            self.slow.close()
            if silent:
                return
            ok = result.severity == "ok"
            said = "" if ok and result.actual == "as expected" else f": {printable(result.actual)}"
            word = click.style(f"{result.severity:<7}", fg=colours[result.severity])
            click.echo(f"{word} {wrapped(f'{result.name}{said}', 8, out)}", file=out)
            facts = {"expected:": result.expected, "hint:    ": pasteable(result.hint)}
            for title, text in () if ok else facts.items():
                click.echo(f"        {title} {wrapped(printable(text), 18, out)}", file=out)
            out.flush()

    return Lines()
