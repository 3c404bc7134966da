"""A run's page in parts: each is a template that is filled in for the page, and again when it
grows."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eureka_agent import wording
from eureka_agent.archive.artefacts import BEST
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.invocation import command
from eureka_agent.journal.under_way import TrainingUnderWay
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, RunStatus, Stage
from eureka_agent.report import progress
from eureka_agent.report.html.document import section_html
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.panels import most_interesting
from eureka_agent.report.progress import Watched
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.search_sections import run_charts
from eureka_agent.report.sections import run_document
from eureka_agent.report.sparkline import common_scale, sparkline
from eureka_agent.web.live import LiveRun, Parts
from eureka_agent.web.rendering import code_lines, render, videos_in

BOARD_ROWS = 20
PAGE_ROWS = 50
TRAININGS = 24
"""Rows of what is training now."""
CURVE_WIDTH = 24
LOG_LINES = 40
LOG_BYTES = 16_384
QUICK_PARTS = ("status", "now", "log")
SECTIONS = ("verdict", "scores", "randomised", "lineage", "cost")
"""Parts that are sections of a run's report."""
SLOW_PARTS = (*SECTIONS, "videos", "leaderboard", "charts")
ORDERS = {
    "best": "best first",
    "newest": "newest first",
    "rejected": "rejected by the critic",
    "failed": "failed in training",
}
"""Lists of attempts on a page of their own."""


def address(run: str, *words: str) -> str:
    """Path of a run's page or of one below it."""
    return "/".join(["/runs", *(quote(word, safe="") for word in (run, *words))])


@dataclass(frozen=True)
class Row:
    """An attempt in a table."""

    place: int | None
    """Rank; None without a fitness."""
    attempt: Attempt
    is_best: bool


def run_parts(report: RunReport, live: LiveRun | None, names: Sequence[str]) -> Parts:
    """HTML of these parts by their names: sections of the report, or templates of their own."""
    sections = {each.name: each for each in run_document(report).sections}

    def link(attempt: str) -> str:
        return address(report.run_name, "attempts", attempt)

    return {
        name: section_html(sections[name], link)
        if name in SECTIONS
        else render(f"parts/{name}.html", **_values(name, report, live))
        for name in names
    }


def _values(name: str, report: RunReport, live: LiveRun | None) -> dict[str, Any]:
    """Values of a part's template."""
    values: dict[str, Any] = {"report": report, "run": address(report.run_name)}
    match name:
        case "status":
            values |= _status(report, live)
        case "now":
            values |= {"view": None} if live is None else now_values(live)
            values |= {"running": report.status is RunStatus.RUNNING}
            values |= {"env_steps": report.settings.env_steps}
        case "log":
            values |= {"lines": log_tail(report.folder / "log.txt")}
        case "videos":
            values |= {"names": videos_in(report.folder, BEST), "making": video_command(report)}
        case "leaderboard":
            rows = rows_of(report, "best")
            values |= {"rows": rows[:BOARD_ROWS], "hidden": len(rows[BOARD_ROWS:])}
        case "charts":
            values |= {"charts": run_charts(report)}
    return values


def _status(report: RunReport, live: LiveRun | None) -> dict[str, Any]:
    view = live if report.status is RunStatus.RUNNING else None
    now, left, rate, steps = report.seconds, None, None, report.cost.env_steps
    if view is not None:
        now = max(now, view.seconds())
        left, rate = progress.seconds_left(view.state, now), view.state.under_way.steps_per_second
        steps = progress.env_steps_done(view.state)
    tiles = {
        "attempts": f"{len(report.attempts):,}",
        "trained": f"{sum(each.stage is Stage.TRAINED for each in report.attempts):,}",
        "wall time": wording.clock_time(now),
        "env steps": wording.count(steps),
    }
    if left is not None:
        tiles["left, about"] = wording.duration(left)
    if rate is not None:
        tiles["env steps/s"] = wording.count(rate)
    return {"tiles": tiles, "phase": "" if view is None else progress.phase(view.state)}


def now_values(live: Watched) -> dict[str, Any]:
    """Values of what is training now."""
    state, under_way = live.state, live.state.under_way
    best = {each.job for each in most_interesting(under_way.running.values())[:TRAININGS]}
    chosen = [each for each in under_way.running.values() if each.job in best]
    scale = common_scale((training.history.values for training in chosen), CURVE_WIDTH)

    def curve(training: TrainingUnderWay) -> str:
        return sparkline(training.history.values, CURVE_WIDTH, scale=scale)

    return {
        "view": under_way,
        "done": progress.trainings_done(state),
        "total": progress.trainings_total(state),
        "rows": [(training, curve(training)) for training in chosen],
        "hidden": len(under_way.running) - len(chosen),
        "awaited": progress.awaited(under_way, live.seconds()),
        "account": progress.account(under_way),
        "notices": [notice.text for notice in under_way.notices],
    }


def video_command(report: RunReport, *attempt: str) -> str:
    """Command that makes the video of an attempt, or of the best policy."""
    return command(shlex.join(["video", str(report.folder), *attempt]))


def rows_of(report: RunReport, order: str) -> list[Row]:
    """Attempts in one of the `ORDERS`; the best first, then those without a fitness, newest
    first."""
    places = {each.id: place for place, each in enumerate(ranked(report.attempts), 1)}
    newest = report.all_attempts[::-1]
    chosen: Sequence[Attempt]
    match order:
        case "best":
            chosen = sorted(newest, key=lambda each: places.get(each.id, len(places) + 1))
        case "rejected":
            chosen = [each for each in newest if each.stage is Stage.REJECTED]
        case "failed":
            chosen = [each for each in newest if each.stage is Stage.FAILED]
        case _:
            chosen = newest
    best = "" if report.best is None else report.best.id
    return [Row(places.get(each.id), each, each.id == best) for each in chosen]


def log_tail(path: Path) -> list[str]:
    """Last lines of a run's log; none where there is no log."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            text = file.read(LOG_BYTES).decode(errors="replace")
    except OSError:
        return []
    lines = text.split("\n")
    return [line for line in lines[size > LOG_BYTES :] if line][-LOG_LINES:]


def run_page(report: RunReport) -> str:
    """The whole page."""
    parts = run_parts(report, None, (*QUICK_PARTS, *SLOW_PARTS))
    fitness = report.written_fitness
    return render(
        "run.html",
        title=report.sentence,
        report=report,
        run=address(report.run_name),
        parts=parts,
        metric=metric_lines(report),
        running=report.status is RunStatus.RUNNING,
        command=report.command_line(),
        folder=str(report.folder.absolute()),
        written=None if fitness is None else code_lines(fitness.source, ()),
        settings=report.settings.model_dump(mode="json"),
    )


def attempts_page(report: RunReport, order: str, page: int) -> str:
    """A page of the table of all attempts. `page` counts from 1."""
    rows = rows_of(report, order)
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    page = min(max(page, 1), pages)
    return render(
        "attempts.html",
        title=f"attempts of {report.run_name}",
        report=report,
        run=address(report.run_name),
        rows=rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS],
        amount=len(rows),
        order=order,
        orders=ORDERS,
        page=page,
        pages=pages,
    )
