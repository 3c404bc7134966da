"""The plan of a batch for `--plan`: for people and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.batch.estimate import BatchPlan
from eureka_agent.batch.file import BatchFile
from eureka_agent.estimates import Estimate
from eureka_agent.report.console import facts_grid
from eureka_agent.report.estimate import (
    estimate_to_json,
    money_text,
    render_notes,
    requests_text,
    time_text,
)
from eureka_agent.wording import count, duration, plural

_NUMBERS = ("trainings", "env steps", "time", "cost")


def render_plan(plan: BatchPlan, folder: Path) -> RenderableType:
    """A line for each search, and their sums."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("search", "task", "proposals", *_NUMBERS):
        table.add_column(title, justify="right" if title in _NUMBERS else "left", no_wrap=True)
    for search, its in plan.searches:
        task = f"{its.description.environment}/{its.description.task}"
        proposals = f"{its.settings.iterations} × {its.counts.candidates}"
        table.add_row(search.name, task, proposals, *_cells(its.estimate))
    total = plan.total
    size = plural(len(plan.searches), "search", "searches")
    facts = {
        "searches": f"{size} in {folder}{_known(folder)}",
        "trainings": f"about {total.trainings:,}",
        "env steps": f"about {count(total.env_steps)}",
        "wall time": time_text(total),
        "models": requests_text(total),
        "cost": money_text(total),
    }
    return Group(table, "", facts_grid(facts), "", *render_notes(plan.notes))


def plan_as_json(file: BatchFile, plan: BatchPlan, folder: Path) -> dict[str, Any]:
    """The plan in plain JSON types."""
    return {
        "folder": str(folder),
        "limits": file.settings.model_dump(mode="json"),
        "searches": [
            {"name": search.name, "settings": search.values, **estimate_to_json(its.estimate)}
            for search, its in plan.searches
        ],
        "total": estimate_to_json(plan.total),
        "notes": list(plan.notes),
    }


def _cells(estimate: Estimate) -> tuple[str, ...]:
    money = "" if not estimate.requests else "?"
    if estimate.requests and estimate.money is not None:
        money = f"${estimate.money:,.2f}"
    seconds = "" if estimate.seconds is None else duration(estimate.seconds)
    return f"{estimate.trainings:,}", count(estimate.env_steps), seconds, money


def _known(folder: Path) -> str:
    there = (folder / BATCH_FILE).is_file()
    return " (there is a batch already: it goes on, and needs less)" if there else ""
