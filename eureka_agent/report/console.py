"""Output to the terminal: text of a run folder, a model or a worker is printed as text only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from eureka_agent.text import visible

_UNBOUNDED = 10_000


class CleanConsole(Console):
    """A console that prints `[red]` and `[link=…]` as they are, and no foreign control character.

    Removed characters have no width, so a table's columns stay in line. Colours come from styles,
    never from marks within a text.
    """

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


def panel(
    body: RenderableType, title: str, border: str = "dim", subtitle: str | None = None
) -> Panel:
    """Panel with its titles on the left; they are not read as markup."""
    return Panel(
        body,
        title=Text(title),
        title_align="left",
        border_style=border,
        subtitle=subtitle,
        subtitle_align="left",
    )


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
