"""Text for a terminal: wrapped to its width. A pipe gets every line as it is."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from typing import TextIO

from eureka_agent.invocation import program

_LEAST_COLUMNS = 20
"""Narrowest width that is believed."""


def color() -> bool | None:
    """False without colours (no-color.org, a dumb terminal), else None: click decides."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """True for a terminal without escape sequences."""
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
    """Text wrapped to a terminal with lines indented like the first, which begins in column
    `indent`; unchanged elsewhere.

    A command in backticks or at the end of a line and a path are not broken.
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
    """Unbreakable pieces: words, and commands that can be pasted."""
    of_program = rf"(?<=: ){re.escape(program())} .*"
    return [match[0] for match in re.finditer(rf"{of_program}|[^\s`]*`[^`]+`\S*|\S+", text)]


def _cells(text: str) -> int:
    """Columns of the text."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
