"""Text for a terminal: broken at words to its width, without colour where none is wanted. Into a
pipe every line goes as it is."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from typing import TextIO

from eureka_agent.invocation import program

_LEAST_COLUMNS = 20
"""A terminal that says less of itself is taken not to know."""


def color() -> bool | None:
    """click's setting for colour: False where the terminal has none or a person wants none
    (no-color.org), else None: let it see whether there is a terminal."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """A terminal that knows no escape sequence."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


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
    """The text, whose first line begins in column `indent`, with the lines below it indented as
    much: on a terminal, else unchanged.

    A command in backticks, one that ends its line, and a path stay whole, on a line of their own
    where they are too long.
    """
    width = columns_of(sys.stdout if stream is None else stream)
    if width is None:
        return text
    return f"\n{' ' * indent}".join(
        line for each in text.split("\n") for line in _lines(each, width - indent)
    )


def _lines(text: str, width: int) -> list[str]:
    if _cells(text) <= width:
        return [text]
    lines: list[str] = []
    for word in _words(text):
        if lines and _cells(lines[-1]) + 1 + _cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _words(text: str) -> list[str]:
    """Pieces that may not be broken: words, and commands that can be pasted."""
    of_program = rf"(?<=: ){re.escape(program())} .*"
    return [match[0] for match in re.finditer(rf"{of_program}|[^\s`]*`[^`]+`\S*|\S+", text)]


def _cells(text: str) -> int:
    """Columns that the text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
