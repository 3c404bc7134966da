"""Lines of styled text cut to a width; cheaper than rich's tables, which measure every cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

Piece = tuple[str, str]
Line = list[Piece]
ASCII = str.maketrans({"·": "-", "–": "-", "─": "-", "━": "#", "…": "~", "±": "~", "−": "-"})
"""Replacements of one cell each for an ASCII terminal."""


@dataclass(frozen=True)
class Column:
    """One column of `rows`; a width of 0 takes what the others leave."""

    title: str
    width: int
    style: str = ""
    right: bool = False


def fit(text: str, width: int, *, right: bool = False) -> str:
    """`text` in exactly `width` terminal cells, cut with an ellipsis or padded."""
    text = " ".join(text.split()) if "\n" in text else text
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…" if width > 0 else ""
    padding = " " * (width - length)
    return padding + text if right else text + padding


def wrapped(text: str, width: int, lines: int) -> list[str]:
    """`text` in at most so many lines of `width` cells, broken between words and cut."""
    rest = " ".join(text.split())
    made: list[str] = []
    while rest and len(made) < lines - 1 and cell_len(rest) > width:
        line = set_cell_size(rest, width)
        if not rest.startswith(line):  # it ends with a blank for half a wide character
            line = line[:-1]
        if not rest[len(line) :].startswith(" ") and " " in line:
            line = line.rpartition(" ")[0]
        made.append(line.rstrip())
        rest = rest[len(line) :].lstrip()
    return [*made, fit(rest, width).rstrip()] if rest else made


def to_ascii(text: str) -> str:
    """`text` in ASCII; a character without a replacement becomes a question mark."""
    return text.translate(ASCII).encode("ascii", "replace").decode("ascii")


def rows(
    columns: Sequence[Column], cells: Iterable[Sequence[str | Line]], width: int
) -> list[Line]:
    """A title line and a line for each of `cells`; a cell may have its own styles."""
    gaps = 2 * len(columns)
    rest = max(0, width - gaps - sum(column.width for column in columns))
    widths = [column.width or rest for column in columns]
    titles = [
        (" " * 2 + fit(column.title, size, right=column.right), "dim")
        for column, size in zip(columns, widths, strict=True)
    ]
    lines: list[Line] = [titles]
    for row in cells:
        line: Line = []
        for column, size, cell in zip(columns, widths, row, strict=True):
            line.append(("  ", ""))
            if isinstance(cell, str):
                line.append((fit(cell, size, right=column.right), column.style))
            else:
                line += cell
                line.append((" " * max(0, size - sum(cell_len(text) for text, _ in cell)), ""))
        lines.append(line)
    return lines


def share_rows(available: int, wanted: Sequence[int], least: Sequence[int]) -> list[int]:
    """Distribute rows: first each section's least, in order, then one by one."""
    given: list[int] = []
    for want, minimum in zip(wanted, least, strict=True):
        share = min(want, minimum, max(0, available))
        given.append(share)
        available -= share
    while available > 0 and any(share < want for share, want in zip(given, wanted, strict=True)):
        for index, want in enumerate(wanted):
            if available > 0 and given[index] < want:
                given[index] += 1
                available -= 1
    return given


class Lines:
    """A rich renderable of lines; longer ones are cropped."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        new_line = Segment.line()
        for line in self.lines:
            left = width
            for text, style in line:
                if options.ascii_only:
                    text = to_ascii(text)
                length = len(text) if text.isascii() else cell_len(text)
                if length > left:
                    text, length = set_cell_size(text, left), left
                if text:
                    yield Segment(text, console.get_style(style) if style else None)
                left -= length
                if left <= 0:
                    break
            yield new_line
