"""`eureka envs`: what environments there are, what one offers, whether your own keeps the contract."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout, suppress

import click

from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.errors import EurekaError


class NonconformingError(EurekaError):
    """An environment that breaks the contract; the findings are printed already."""

    exit_status = 1


@click.command()
@click.argument("environment", required=False)
@click.option("--check", metavar="PATH", help="Check that the environment at PATH keeps the contract.")
@click.option("--task", help="Task to show or check; default: the first one (shown), every one (checked).")
@FORMAT
def envs(environment: str | None, check: str | None, task: str | None, output_format: str) -> None:
    """List the built-in environments, show the variables of ENVIRONMENT, or check one of your own.

    \b
    eureka envs
    eureka envs ant
    eureka envs --check path/to/my_env
    """
    if check is not None:
        _check(check, task, output_format)
    elif environment is not None:
        _show(environment, task, output_format)
    else:
        _list(output_format)


def _list(output_format: str) -> None:
    from eureka_agent.simulation.catalogue import list_environments

    entries = list_environments()
    if output_format == "json":
        print_json([{"name": entry.name, "doc": entry.doc, "tasks": dict(entry.tasks)} for entry in entries])
        return
    from rich.table import Table

    from eureka_agent.report.console import CleanConsole

    table = Table("environment", "task", "sentence", box=None, pad_edge=False, header_style="bold")
    for entry in entries:
        for index, (name, sentence) in enumerate(entry.tasks.items()):
            table.add_row(entry.name if index == 0 else "", name, sentence)
    console = CleanConsole()
    console.print(table)
    console.print(
        "\nYour own: --env path/to/folder. Gymnasium's: --env gymnasium:Hopper-v5. Details: eureka envs NAME",
        highlight=False,
    )


def _show(environment: str, task: str | None, output_format: str) -> None:
    from eureka_agent.simulation.loading import describe, load_environment
    from eureka_agent.simulation.starts import measure_starts

    with redirect_stdout(sys.stderr):  # what the environment's own code prints is none of our output
        loaded = load_environment(environment)
        name, found = loaded.task(task)
        description = describe(loaded, name)
        with suppress(EurekaError):  # one that cannot be made can be shown all the same; `--check` says what is wrong
            description = description.model_copy(update={"measured": measure_starts(loaded, found)})
    if output_format == "json":
        print_json(description.model_dump(mode="json"))
        return
    from eureka_agent.report.console import CleanConsole
    from eureka_agent.report.environment import render_environment

    CleanConsole().print(render_environment(description, tuple(loaded.tasks)))


def _check(reference: str, task: str | None, output_format: str) -> None:
    from eureka_agent.simulation.conformance import check_environment

    with redirect_stdout(sys.stderr):  # what the environment's own code prints is none of our output
        results = check_environment(reference, task)
    failed = [result for result in results if not result.passed]
    if output_format == "json":
        print_json(
            [
                {
                    "name": result.name,
                    "passed": result.passed,
                    "expected": result.expected,
                    "actual": result.actual,
                    "hint": result.hint,
                }
                for result in results
            ]
        )
    else:
        for result in results:
            mark = click.style("ok  ", fg="green") if result.passed else click.style("FAIL", fg="red")
            click.echo(f"{mark} {result.name}")
            if not result.passed:
                click.echo(
                    f"       expected: {result.expected}\n       actual:   {result.actual}\n       hint:     {result.hint}"
                )
    if failed:
        raise NonconformingError(
            f"{len(failed)} of {len(results)} checks failed on {reference!r}",
            "mend the first one first: others may follow from it",
        )
    if output_format == "text":
        click.echo(f"{reference} keeps the contract: {len(results)} checks passed")
