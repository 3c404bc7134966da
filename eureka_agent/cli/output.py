"""`--format`, and what it prints. Imports click alone, so that `eureka doctor` works where packages
are missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from eureka_agent.cli.command import Choice

FORMAT = click.option(
    "--format",
    "output_format",
    type=Choice(["text", "json"]),
    default="text",
    help="How to print it.",
    show_default=True,
)

TRUST = click.option(
    "--trust",
    is_flag=True,
    help="Take a run that is not your own at its word, whatever it would run or send.",
)


SCHEMA_VERSION = 1
"""Raised when a key of `--format json` goes or changes its meaning (docs/json.md); a new key raises
nothing."""


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as `--format json` promises it, the version of its schema in front."""
    from eureka_agent.archive.files import dump_json
    from eureka_agent.text import escaped

    text = escaped(dump_json({"schema_version": SCHEMA_VERSION, **document}))
    if (
        not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    ):  # stand-ins would be other values
        text = json.dumps(json.loads(text), indent=2) + "\n"
    click.echo(text, nl=False)


def say(text: str, *, err: bool = False) -> None:
    """Print text that may come from a run folder, a model or a worker: nothing in it commands the
    terminal."""
    from eureka_agent.text import printable

    click.echo(printable(text), err=err)
