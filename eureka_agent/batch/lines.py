"""Lines and tables of a batch for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent.batch.queue import Event
from eureka_agent.batch.session import BatchEnd
from eureka_agent.batch.summary import COLUMNS, NUMBERS, Row, cells, counts
from eureka_agent.text import one_line

STYLES = {
    "finished": "green",
    "failed": "red",
    "cancelled": "yellow",
    "stopped": "yellow",
    "running": "cyan",
    "paused": "yellow",
    "cancelling": "yellow",
}
_LONGEST_TEXT = 300


def event_line(event: Event) -> str:
    """`22:15:01 walkers-hopper  finished`."""
    time = f"{datetime.fromtimestamp(event.time):%H:%M:%S}"
    search = f" {event.search}:" if event.search else ""
    text = f" {one_line(event.text, _LONGEST_TEXT)}" if event.text else ""
    return f"{time}{search} {event.kind}{text}"


def render_rows(rows: Sequence[Row]) -> RenderableType:
    """The searches, a line each, and the totals."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    for row in rows:
        name, state, *rest = cells(row)
        table.add_row(name, Text(state, STYLES.get(state, "")), *rest)
    totals = ", ".join(f"{number} {name}" for name, number in counts(rows).items())
    messages = [
        Text(f"{row.search}: {one_line(row.message, _LONGEST_TEXT)}") for row in rows if row.message
    ]
    return Group(table, Text(totals, style="dim"), *messages)


def render_end(end: BatchEnd, folder: Path) -> RenderableType:
    """The end of a call: its table, why it ended, and where the summary is."""
    parts: list[RenderableType] = [Text(), render_rows(end.rows)]
    if end.message:
        parts.append(Text(end.message))
    parts.append(Text(f"summary {folder / 'summary.html'}", no_wrap=True, overflow="ignore"))
    return Group(*parts)
