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


def print_json(value: Any) -> None:
    """Print a value as `--format json` promises it."""
    from eureka_agent.archive.files import dump_json

    click.echo(dump_json(value), nl=False)
