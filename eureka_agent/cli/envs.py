"""`eureka envs`: list of environments, the variables of one, a check of your own, a template."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import Choice, Command, Number, UsageError
from eureka_agent.cli.new_environment import KINDS, new_environment
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.cli.wrapping import is_dumb, wrapped
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command, pasteable
from eureka_agent.settings import DAY_SECONDS
from eureka_agent.wording import plural

if TYPE_CHECKING:
    from eureka_agent.conformance.check import Observer


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
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that one check of --check may take.",
)
@click.option(
    "--new",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write a template of your own to FOLDER.",
)
@click.option("--kind", type=Choice(KINDS), help="Kind of template that --new writes.")
@click.option(
    "--task", help="Task to show or check; default: the first one (shown), every one (checked)."
)
@FORMAT
def envs(
    environment: str | None,
    check: str | None,
    time_limit: float,
    new: Path | None,
    kind: str | None,
    task: str | None,
    output_format: str,
) -> None:
    """List the built-in environments, show the variables of ENVIRONMENT, check one of your own, or
    begin a new one.

    \b
    eureka envs
    eureka envs ant
    eureka envs --check path/to/my_env
    eureka envs --new path/to/my_env --kind torch
    """
    given = [
        name
        for name, value in (("ENVIRONMENT", environment), ("--check", check), ("--new", new))
        if value is not None
    ]
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
    elif environment is not None:
        _show(environment, task, output_format)
    else:
        _list(output_format)


def _list(output_format: str) -> None:
    from eureka_agent.simulation.catalogue import list_environments

    entries = list_environments()
    if output_format == "json":
        found = [
            {"name": each.name, "doc": each.doc, "tasks": dict(each.tasks)} for each in entries
        ]
        print_json({"environments": found})
        return
    from rich.table import Table

    from eureka_agent.report.console import list_console

    table = Table("environment", "task", "sentence", box=None, pad_edge=False, header_style="bold")
    for entry in entries:
        for index, (name, sentence) in enumerate(entry.tasks.items()):
            table.add_row(entry.name if index == 0 else "", name, sentence)
    console = list_console()
    console.print(table)
    note = (
        "\nYour own: --env path/to/folder (--new begins one). Gymnasium's: --env"
        f" gymnasium:Hopper-v5.\nVariables of one: {command('envs NAME')}"
    )
    console.print(note, highlight=False, soft_wrap=True)


def _show(environment: str, task: str | None, output_format: str) -> None:
    from eureka_agent.simulation.loading import describe, load_environment
    from eureka_agent.simulation.starts import measure_starts

    with redirect_stdout(sys.stderr):  # prints of the environment are no output of this command
        loaded = load_environment(environment)
        name, found = loaded.task(task)
        description = describe(loaded, name)
        with suppress(EurekaError):  # `--check` reports a fault
            description = description.model_copy(update={"measured": measure_starts(loaded, found)})
    if output_format == "json":
        print_json(description.model_dump(mode="json"))
        return
    from eureka_agent.report.console import CleanConsole
    from eureka_agent.report.environment import render_environment

    CleanConsole().print(render_environment(description, tuple(loaded.tasks)))


def _check(reference: str, task: str | None, limit_s: float, output_format: str) -> None:
    from eureka_agent.conformance.check import check_environment
    from eureka_agent.simulation.catalogue import GYMNASIUM_PREFIX, find_folder

    if not reference.startswith(GYMNASIUM_PREFIX):
        find_folder(reference)  # raises for one that does not exist
    progress = _progress(output_format == "json")
    with redirect_stdout(sys.stderr):  # prints of the environment are no output of this command
        results = check_environment(reference, task, limit_s=limit_s, observer=progress)
    counts = {
        severity: sum(result.severity == severity for result in results)
        for severity in ("warning", "error")
    }
    if output_format == "json":
        print_json({"checks": [{**asdict(result), "passed": result.passed} for result in results]})
    found = " and ".join(plural(count, severity) for severity, count in counts.items() if count)
    if counts["error"]:
        raise NonconformingError(
            f"{found} in {plural(len(results), 'check')} of {reference!r}",
            "mend the first error first: others may follow from it, and what trains is tried when"
            " there is none",
        )
    if output_format == "text":
        checks = plural(len(results), "check") + (f", {found}" if found else "")
        click.echo(f"{reference} keeps the contract: {checks}")


def _progress(silent: bool) -> Observer:
    """Observer that prints results like a linter's, and on a terminal the current check."""
    from eureka_agent.conformance.check import CheckResult, Observer
    from eureka_agent.text import printable

    out, on_terminal = sys.stdout, sys.stderr.isatty() and not is_dumb()
    colours = {"ok": "green", "warning": "yellow", "error": "red"}

    class Lines(Observer):
        """Prints each result; `silent`: only progress, on standard error."""

        task = ""

        def begins(self, task: str, name: str, seconds: float) -> None:
            if task != self.task and not silent:
                click.secho(f"task {task}", bold=True, file=out)
                self.task = task
            if on_terminal:
                click.echo(f"\r\x1b[K   … {name}", nl=False, err=True, color=True)
            elif seconds:
                click.echo(f"   … {name} (about {seconds:g} s)", err=True)

        def ends(self, result: CheckResult) -> None:
            if on_terminal:
                click.echo("\r\x1b[K", nl=False, err=True, color=True)
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
