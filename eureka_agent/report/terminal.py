"""Blocks of a document for a terminal, as rich renderables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from eureka_agent.report import blocks
from eureka_agent.text import visible

_UNBOUNDED = 10_000


class CleanConsole(Console):
    """A console that prints `[red]` and `[link=…]` as they are, and no foreign control character.
    Removed characters have no width, so a table's columns stay in line. Colours come from styles,
    never from marks within a text."""

    def __init__(self, **options: Any) -> None:
        """`options`: those of rich's console."""
        super().__init__(**{"markup": False, "emoji": False, **options})

    def print(self, *objects: Any, **options: Any) -> None:
        """Print without cropping lines: a path longer than the terminal can still be copied."""
        super().print(*objects, **{"crop": False, **options})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments of a renderable; every nested one passes here too."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def list_console() -> CleanConsole:
    """Console for a table with a line for each thing: without a terminal as wide as the table."""
    console = CleanConsole()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return CleanConsole(width=_UNBOUNDED)


def facts_grid(facts: Mapping[str, RenderableType], style: str = "bold") -> Table:
    """Names, in this style, with their facts beside them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=style, no_wrap=True)
    table.add_column()
    for name, fact in facts.items():
        table.add_row(name, fact)
    return table


def panel(body: RenderableType, title: str, border: str = "dim") -> Panel:
    """Panel with its title on the left, which is not read as markup."""
    return Panel(body, title=Text(title), title_align="left", border_style=border)


class PythonSource:
    """Python source, in colours where the console has any."""

    def __init__(self, source: str) -> None:
        """`source`: a model may have written it."""
        self._source = source

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.color_system is None or console.no_color:
            yield Text(self._source, tab_size=4)
            return
        from rich.syntax import Syntax  # slow to import

        yield Syntax(
            self._source, "python", theme="ansi_dark", background_color="default", word_wrap=True
        )


WIDE = 100
"""Columns from which a table has room for its spare columns."""
_STYLES = {"": "", "muted": "dim", "strong": "bold", "warn": "yellow"}


def render_sections(sections: Sequence[blocks.Section]) -> Iterator[RenderableType]:
    """The blocks of sections with an empty line after each; titles only where a terminal would not
    know what follows."""
    for section in sections:
        shown = [part for block in section.blocks for part in render_block(block)]
        if shown:
            yield from shown
            yield Text()


def render_block(block: blocks.Block) -> list[RenderableType]:
    """A block; nothing for one that only a browser shows."""
    match block:
        case blocks.Words():
            return [Text(block.text.replace("`", ""), style=_STYLES[block.style])]
        case blocks.Facts():
            texts = {
                name: Text(text, style="bold" if name == block.strong else "")
                for name, text in block.rows.items()
            }
            return [facts_grid(texts, "dim")]
        case blocks.Grid():
            return [_Table(block)] if block.rows else []
        case blocks.Source(language="python"):
            shown = PythonSource(block.text)
            return [panel(shown, block.title, "none") if block.title else shown]
        case blocks.Source():
            return [unbroken(block.text)]
        case blocks.Quote():
            from rich.markdown import Markdown  # slow to import, and most tables quote nobody

            quoted = Markdown(block.text.strip(), hyperlinks=False)
            return [panel(quoted, block.title or "reasoning")]
        case blocks.Items():
            return [Text(f"- {line}".replace("`", "")) for line in block.lines]
        case blocks.DrawingBlock() | blocks.Folded():
            return []


def unbroken(text: str, style: str = "") -> Text:
    """One line for a path or a command, however narrow the terminal is."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


class _Table:
    """A table; a narrow terminal leaves its spare columns out."""

    def __init__(self, grid: blocks.Grid) -> None:
        self._grid = grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid, wide = self._grid, options.max_width >= WIDE
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        kept = [place for place, title in enumerate(grid.titles) if wide or title not in grid.spare]
        for place in kept:
            last, is_number = place == len(grid.titles) - 1, grid.titles[place] in grid.numbers
            table.add_column(
                grid.titles[place],
                style="" if place else "bold",
                justify="right" if is_number else "left",
                no_wrap=not last,
                ratio=1 if last and not is_number else None,
            )
        for place, row in enumerate(grid.rows):
            best = bool(grid.best) and grid.id_of(place) == grid.best
            table.add_row(*(Text(row[cell]) for cell in kept), style="green" if best else "")
        yield table
