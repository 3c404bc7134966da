"""A model's reasoning for a terminal."""

from __future__ import annotations

from rich.panel import Panel


def reasoning_panel(text: str) -> Panel:
    """The reasoning as the Markdown that models write, so that its paragraphs have the terminal's
    width. No links: what a model names is not to be clicked."""
    from rich.markdown import Markdown  # slow to import, and most tables have no reasoning

    prose = Markdown(text.strip(), hyperlinks=False)
    return Panel(prose, title="reasoning", title_align="left", border_style="dim")
