"""A model's reasoning for a terminal."""

from __future__ import annotations

from rich.panel import Panel

from eureka_agent.report.console import panel


def reasoning_panel(text: str) -> Panel:
    """Panel with a model's Markdown, so that paragraphs fit the terminal; without links."""
    from rich.markdown import Markdown  # slow to import, and most tables have no reasoning

    return panel(Markdown(text.strip(), hyperlinks=False), "reasoning")
