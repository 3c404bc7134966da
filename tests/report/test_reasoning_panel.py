"""A model's reasoning in a terminal: paragraphs of its width, and nothing that acts."""

from __future__ import annotations

import io

from rich.console import Console

from eureka_agent.report.blocks import Quote
from eureka_agent.report.terminal import render_block


def shown(text: str, width: int = 60) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(*render_block(Quote(text)))
    assert isinstance(console.file, io.StringIO)
    return [line.strip("│ ") for line in console.file.getvalue().splitlines()[1:-1]]


def test_lines_that_the_model_broke_are_filled() -> None:
    assert shown("The pole has to\nstand.\n\nIt does.\n") == [
        "The pole has to stand.",
        "",
        "It does.",
    ]


def test_brackets_are_no_markup_and_links_cannot_be_clicked() -> None:
    lines = shown("[bold red]x[/] and [here](http://evil.test).")
    text = "\n".join(lines)
    assert "[bold red]x[/]" in text
    assert "http://evil.test" in text, "where it leads is seen"
    assert "\x1b]8" not in text
