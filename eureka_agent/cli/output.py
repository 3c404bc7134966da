"""`--format` and its output: text is wrapped to a terminal's width, and a pipe gets every line as
it is. Imports only click, for `eureka doctor`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from eureka_agent.cli.command import NamedChoice
from eureka_agent.invocation import program

if TYPE_CHECKING:
    from eureka_agent.journal.entries import BaseEntry

_LEAST_COLUMNS = 20


def color() -> bool | None:
    """False without colours (no-color.org, a dumb terminal), else None: click decides."""
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return False if os.environ.get("NO_COLOR") or is_dumb else None


def columns_of(stream: TextIO) -> int | None:
    """Width of the terminal behind a stream; None where there is none."""
    if not stream.isatty():
        return None
    try:
        own = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        own = 0
    given = os.environ.get("COLUMNS", "")
    columns = int(given) if given.isdigit() else own or shutil.get_terminal_size().columns
    return columns if columns >= _LEAST_COLUMNS else None


def wrapped(text: str, indent: int, stream: TextIO | None = None) -> str:
    """Text wrapped to a terminal with lines indented like the first, which begins in column
    `indent`; unchanged elsewhere.

    A command in backticks or at the end of a line and a path are not broken.
    """
    width = columns_of(sys.stdout if stream is None else stream)
    if width is None:
        return text
    commands = re.compile(rf"(?<=: ){re.escape(program())} .*|`[^`\n]+`")
    whole = commands.sub(lambda found: found[0].replace(" ", "\0"), text)
    lines = [
        line
        for each in whole.split("\n")
        for line in textwrap.wrap(
            each, width - indent, break_long_words=False, break_on_hyphens=False
        )
        or [""]
    ]
    return f"\n{' ' * indent}".join(lines).replace("\0", " ")


FORMAT = click.option(
    "--format",
    "output_format",
    type=NamedChoice(["text", "json"]),
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
