"""`--format`, and what it prints. Imports click alone, so that `eureka doctor` works where packages are missing."""

from __future__ import annotations

from typing import Any

import click

FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to print it.",
    show_default=True,
)

TRUST = click.option(
    "--trust", is_flag=True, help="Take a run that is not your own at its word, whatever it would run or send."
)


def print_json(value: Any) -> None:
    """Print a value as `--format json` promises it."""
    from eureka_agent.archive.files import dump_json
    from eureka_agent.llm.text import escaped

    click.echo(escaped(dump_json(value)), nl=False)


def say(text: str, *, err: bool = False) -> None:
    """Print text that may come from a run folder, a model or a worker: nothing in it commands the terminal."""
    from eureka_agent.llm.text import printable

    click.echo(printable(text), err=err)
