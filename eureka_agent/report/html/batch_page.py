"""`summary.html` of a batch: one file without any address, with a row for each search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eureka_agent.report.html.document import asset, content_security_policy, templates


def batch_page(
    title: str,
    state: str,
    totals: Mapping[str, str],
    rows: Sequence[Any],
    numbers: Sequence[str],
    cells: Callable[[Any], Mapping[str, str]],
    legend: str,
) -> str:
    """The document. `rows`: see `batch.summary.SummaryRow`; `numbers`: titles of the columns of
    numbers; `cells`: a row's cells by title; `legend`: a sentence on them."""
    tasks: dict[str, list[Any]] = {}
    for row in rows:
        tasks.setdefault(row.task or "not begun", []).append(row)
    styles = (asset("style.css"),)
    return (
        templates()
        .get_template("batch.html.j2")
        .render(
            title=title,
            state=state,
            totals=totals,
            numbers=numbers,
            cells=cells,
            legend=legend,
            tasks={task: _ranked(members) for task, members in tasks.items()},
            styles=styles,
            policy=content_security_policy((), styles),
        )
    )


def _ranked(rows: Sequence[Any]) -> list[tuple[Any, float]]:
    """Rows of one task, best first, each with the length of its bar from 0 to 100."""
    known = [row.best_fitness for row in rows if row.best_fitness is not None]
    known += [row.human_fitness for row in rows if row.human_fitness is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    width = high - low or 1.0
    ordered = sorted(
        rows,
        key=lambda row: -float("inf") if row.best_fitness is None else row.best_fitness,
        reverse=True,
    )
    return [
        (row, 0.0 if row.best_fitness is None else 100 * (row.best_fitness - low) / width)
        for row in ordered
    ]
