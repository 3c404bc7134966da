"""`--format` and its output. Imports only click, for `eureka doctor`."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli.command import Choice

if TYPE_CHECKING:
    from eureka_agent.journal.entries import BaseEntry

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
"""Changes when a key of `--format json` is removed or changes its meaning (docs/json.md)."""


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document with the version of its schema."""
    from eureka_agent.archive.files import dump_json
    from eureka_agent.text import escaped

    text = escaped(dump_json({"schema_version": SCHEMA_VERSION, **document}))
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):  # needs escapes
        text = json.dumps(json.loads(text), indent=2) + "\n"
    click.echo(text, nl=False)


def say_notice(entry: BaseEntry) -> None:
    """Print a notice on standard error, and nothing of another entry; an `Observer`."""
    from eureka_agent.journal.entries import Notice

    if isinstance(entry, Notice):
        say(entry.text, err=True)


@contextmanager
def said_if_slow(text: str, seconds: float = 3.0) -> Iterator[None]:
    """Say `text` on standard error where the block takes longer than `seconds`."""
    timer = threading.Timer(seconds, say, (text,), {"err": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say(text: str, *, err: bool = False) -> None:
    """Print untrusted text without control characters."""
    from eureka_agent.text import printable

    click.echo(printable(text), err=err)
