"""The plan of a batch: what it would search, before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.batch.file import BatchFile
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.search.typed_settings import value_text
from eureka_agent.wording import plural


def render_plan(file: BatchFile, searches: Sequence[PlannedSearch], folder: Path) -> RenderableType:
    """A line for each search with the settings in which they differ."""
    varied = _varied(searches)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("search", *varied):
        table.add_column(title, no_wrap=True)
    for search in searches:
        table.add_row(
            search.name,
            *(value_text(search.values[name]) if name in search.values else "" for name in varied),
        )
    known = " (there is a batch already: it goes on)" if (folder / BATCH_FILE).is_file() else ""
    where = Text(f"{plural(len(searches), 'search', 'searches')} in {folder}{known}")
    return Group(table, where, Text("nothing was started", style="dim"))


def plan_as_json(
    file: BatchFile, searches: Sequence[PlannedSearch], folder: Path
) -> dict[str, Any]:
    """The plan in plain JSON types."""
    return {
        "folder": str(folder),
        "limits": file.settings.model_dump(mode="json"),
        "searches": [{"name": each.name, "settings": each.values} for each in searches],
    }


def _varied(searches: Sequence[PlannedSearch]) -> list[str]:
    """Settings that are not equal in all searches, `env` always among them."""
    names = dict.fromkeys(name for search in searches for name in search.values)
    first = searches[0].values
    return [
        name
        for name in names
        if name == "env" or any(each.values.get(name) != first.get(name) for each in searches)
    ]
