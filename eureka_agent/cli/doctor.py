"""`eureka doctor`: checks of packages, devices, walls and keys, and of a worker's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eureka_agent.cli.command import Command
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.cli.wrapping import wrapped

if TYPE_CHECKING:
    from eureka_agent.cli.health import Check

MARKS = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "error": ("FAIL", "red")}


@click.command(cls=Command)
@FORMAT
def doctor(output_format: str) -> None:
    """Tell what is installed and what works here. Exit status 1 when something that a search needs
    does not work.

    \b
    eureka doctor
    """
    import os
    from dataclasses import asdict

    from eureka_agent.archive.run_folder import runs_folder
    from eureka_agent.cli.health import all_checks

    checks = []
    for check in all_checks(runs_folder(), os.environ):
        checks.append(check)
        if output_format == "text":
            click.echo(check_lines(check))
    healthy = all(check.status != "error" for check in checks)
    if output_format == "json":
        print_json({"ok": healthy, "checks": [asdict(check) for check in checks]})
    else:
        fault = "a search cannot run here; see FAIL above"
        click.echo("everything that a search needs is here" if healthy else fault)
    if not healthy:
        raise click.exceptions.Exit(1)


def check_lines(check: Check) -> str:
    """A check in one line, wrapped on a terminal, with its hint below."""
    word, colour = MARKS[check.status]
    parts = [f"{check.name}: {check.detail}", check.hint]
    text = "\n      ".join(wrapped(part, 6) for part in parts if part)
    return f"{click.style(f'{word:>4}', fg=colour)}  {text}"
