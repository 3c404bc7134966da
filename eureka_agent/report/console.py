"""The door to the terminal: whatever is printed through it, from a run folder, a model or a worker,
is text and commands nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from eureka_agent.text import visible

_UNBOUNDED = 10_000
"""Columns, more than any line has."""


class CleanConsole(Console):
    """A console that shows `[red]` and `[link=…]` as they are written, and lets no control
    character through but its own.

    What is taken away has no width, so a table's columns stay in line. Colours come from styles,
    never from marks within a text.
    """

    def __init__(self, **options: Any) -> None:
        """`options`: those of rich's console."""
        super().__init__(**{"markup": False, "emoji": False, **options})

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, but crop no line: a path that is longer than the terminal is still
        whole, and can be copied."""
        super().print(*objects, **{"crop": False, **options})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of a renderable; every nested one passes here too."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def list_console() -> CleanConsole:
    """A console for a table with a line for each thing: as wide as the table where no terminal
    shows it, so that no line is cut or wrapped."""
    console = CleanConsole()
    return (
        console
        if console.is_terminal or "COLUMNS" in os.environ
        else CleanConsole(width=_UNBOUNDED)
    )


def unwrapped(text: str | Path, style: str = "") -> Text:
    """A line with a path or a command, which stays one line however narrow the terminal is."""
    return Text(str(text), style=style, no_wrap=True, overflow="ignore")
