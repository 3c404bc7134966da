"""Untrusted text within Markdown: escaped, so that a viewer loads, links and lays out nothing of
it.

A picture in a model's text would tell a server who opened the report, and when.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from eureka_agent.text import clipped

LONGEST_QUOTATION = 20_000
"""Characters of one text that a report quotes."""
_WORD = re.compile(r"[^\s|`<>\\!()\[\]]+")
"""Words that could hold an address."""
_ADDRESS = re.compile(r"//|@|www\.", re.IGNORECASE)
_SYNTAX = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
"""Characters with a meaning within a line; an underscore within a word has none."""
_ENTITY = re.compile(r"&(?=[#\w])")
_BLOCK = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=[#=>]|[-+](?:[\s-]|$)))")
"""Beginning of a heading, a list or a quotation."""


class Markup(str):
    """Text that is Markdown already: `table` does not escape it."""


def escaped(text: str) -> Markup:
    """Text in one line, for any place but a code block. Addresses become code, not links."""
    return Markup(_BLOCK.sub(r"\1\\", _within_a_line(text)))


def _within_a_line(text: str) -> str:
    parts = re.split(f"({_WORD.pattern})", " ".join(text.split()).replace("\0", ""))
    return "".join(
        f"`{part}`" if _ADDRESS.search(part) else _escaped_syntax(part) for part in parts
    )


def _escaped_syntax(text: str) -> str:
    # an entity, since the oldest dialects know no backslash before it
    return _SYNTAX.sub(r"\\\g<0>", _ENTITY.sub("&amp;", text)).replace("<", "&lt;")


def quoted(text: str) -> str:
    """Quotation of a text, line by line, cut after `LONGEST_QUOTATION` characters."""
    lines = clipped(text.strip(), LONGEST_QUOTATION).splitlines()
    # two spaces end a line: without them a viewer would make one paragraph of a list
    return "\n".join(f"> {escaped(line)}  " if line.strip() else ">" for line in lines).rstrip()


def code(text: object) -> Markup:
    """Code within a line, also for a table."""
    line = " ".join(str(text).split())
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return Markup(f"{ticks}{space}{line}{space}{ticks}")


def table(titles: str, rows: Iterable[Sequence[str]]) -> str:
    """Table with titles such as `a | b`. Cells that are no `Markup` are escaped."""
    lines = [f"| {titles} |", "|" + " --- |" * (1 + titles.count(" | "))]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    # nothing begins a block within a table
    line = text if isinstance(text, Markup) else _within_a_line(text)
    return re.sub(r"(?<!\\)\|", r"\|", line)


def fenced(text: str, language: str = "") -> str:
    """Code block that none of the text's own lines can end."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
