"""Summary of a batch: a row for each search, kept current as Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.archive.files import FILE_NAME, write_text
from eureka_agent.archive.run_folder import reading
from eureka_agent.batch.queue import ENDED, Entry, Queue, State
from eureka_agent.errors import RunFolderError
from eureka_agent.records import RunStatus, Stage
from eureka_agent.report.html.batch_page import batch_page
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.verdict import best_fitness, fitness_text, why_not_normalized
from eureka_agent.search.summary import run_overview
from eureka_agent.text import one_line

SUMMARIES = ("summary.html", "summary.md", "summary.csv")
_LONGEST_TASK = 60


@dataclass(frozen=True)
class Row:
    """One search in the summary."""

    search: str
    state: str
    task: str = ""
    """Environment and task."""
    sentence: str = ""
    designer: str = ""
    seed: int | None = None
    generations: str = ""
    """Generations that have ended, of how many: `2/3`."""
    trained: int = 0
    """Attempts that were trained to their end."""
    attempts: int = 0
    best: str = ""
    """Best fitness with its deviation over fresh seeds and its unit, as text."""
    best_fitness: float | None = None
    human: str = ""
    """The human reward's fitness with its unit, as text."""
    human_fitness: float | None = None
    fitness_unit: str = ""
    human_normalized: float | None = None
    """1 is the human reward, 0 the sparse one."""
    why_not_normalized: str = ""
    """Why there is no such number, in few words."""
    env_steps: int = 0
    money: Decimal | None = None
    """US dollars; None where unknown."""
    seconds: float = 0.0
    message: str = ""


def row_to_json(row: Row) -> dict[str, Any]:
    """A row; money is a decimal number in a string, None where unknown."""
    return {**asdict(row), "money": None if row.money is None else str(row.money)}


class Summary:
    """Rows of a batch's searches. A search that has ended is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ended: dict[tuple[str, State, str], Row] = {}

    def rows(self, entries: Sequence[Entry]) -> list[Row]:
        """The rows in the order of the queue."""
        found = []
        for entry in entries:
            key = entry.name, entry.state, entry.message
            row = self._ended.get(key)
            if row is None:
                row = _row(self._folder, entry)
                if entry.state not in (State.RUNNING, State.PAUSED):
                    self._ended[key] = row
            found.append(row)
        return found

    def write(self, entries: Sequence[Entry], state: str) -> list[Row]:
        """Write all summaries. `state`: the batch's state in words."""
        rows = self.rows(entries)
        title = self._folder.name
        write_text(self._folder / "summary.md", markdown(title, state, rows))
        write_text(self._folder / "summary.csv", as_csv(rows))
        page = batch_page(title, state, counts(rows), rows, NUMBERS, by_column, LEGEND)
        write_text(self._folder / "summary.html", page)
        return rows


def rows_of(queue: Queue) -> list[Row]:
    """The rows of a batch."""
    return Summary(queue.folder).rows(queue.entries())


def _row(folder: Path, entry: Entry) -> Row:
    if not (folder / entry.name / FILE_NAME).is_file():
        return Row(entry.name, entry.state.value, message=entry.message)
    try:
        with reading(str(folder / entry.name)) as run:
            ended = len(run.archive.facts.iterations_ended)
            return _row_of(run_overview(run), entry, ended)
    except RunFolderError as error:
        return Row(entry.name, entry.state.value, message=error.message)


def _row_of(report: RunReport, entry: Entry, ended: int) -> Row:
    score, human = report.best_score, report.score("human")
    best = None if score is None else score.mean
    if best is None and report.best is not None and report.by_strength is None:
        best = report.best.fitness
    description = report.description
    # the batch's command goes on with it, not the one that its run names
    goes_on = report.status is RunStatus.STOPPED and entry.state not in ENDED
    return Row(
        entry.name,
        entry.state.value,
        f"{description.environment} · {description.task}",
        report.sentence,
        report.designer,
        report.settings.seed,
        f"{ended}/{report.settings.iterations}",
        sum(attempt.stage is Stage.TRAINED for attempt in report.attempts),
        len(report.attempts),
        best_fitness(report),
        best,
        "" if human is None else fitness_text(report, human.mean),
        None if human is None else human.mean,
        description.fitness_unit,
        None if score is None else score.human_normalized,
        why_not_normalized(report),
        report.cost.env_steps,
        report.cost.money if report.cost.requests else Decimal(0),
        report.seconds,
        entry.message or ("" if goes_on else report.message),
    )


def counts(rows: Sequence[Row]) -> dict[str, str]:
    """Totals of a batch, by their names."""
    states = [row.state for row in rows]
    known = [row.money for row in rows if row.money is not None]
    begun = [row for row in rows if row.attempts]
    money = wording.MISSING if any(row.money is None for row in begun) else f"${sum(known):,.2f}"
    return {
        "searches": str(len(rows)),
        **{state: str(states.count(state)) for state in dict.fromkeys(states)},
        "trained": f"{sum(row.trained for row in rows):,}",
        "env steps": wording.count(sum(row.env_steps for row in rows)),
        "on models": money,
    }


TEXTS = ("search", "state", "task")
NUMBERS = ("generations", "trained", "best fitness", "human", "vs human", "time")
COLUMNS = (*TEXTS, *NUMBERS)
LEGEND = (
    "Trained: of the attempts, those trained to their end. Fitness: mean ± standard deviation over"
    " fresh seeds. Vs human: 1 is the human reward, 0 the sparse one; no number where they cannot"
    " be told apart."
)


def cells(row: Row) -> tuple[str, ...]:
    """The row's cells as text, by `COLUMNS`."""
    return (
        row.search,
        row.state,
        one_line(row.task, _LONGEST_TASK),
        row.generations or wording.MISSING,
        f"{row.trained}/{row.attempts}" if row.attempts else wording.MISSING,
        row.best or wording.MISSING,
        row.human or wording.MISSING,
        row.why_not_normalized or wording.number(row.human_normalized),
        wording.duration(row.seconds) if row.seconds else wording.MISSING,
    )


def by_column(row: Row) -> dict[str, str]:
    """The cells of a page's table by their titles, where the search is the row's head and the task
    stands elsewhere."""
    return dict(zip(COLUMNS, cells(row), strict=True)) | {"designer": row.designer}


def markdown(title: str, state: str, rows: Sequence[Row]) -> str:
    """The summary as Markdown."""
    facts = ", ".join(f"{value} {name}" for name, value in counts(rows).items())
    lines = [f"# {title}", "", f"{state}. {facts}.", "", LEGEND, ""]
    lines += [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for row in rows:
        lines.append(f"| {' | '.join(cell.replace('|', '¦') for cell in cells(row))} |")
    failed = [row for row in rows if row.message]
    if failed:
        lines += ["", *(f"- **{row.search}**: {one_line(row.message, 300)}" for row in failed)]
    return "\n".join(lines) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """The summary as CSV, with all numbers in full."""
    stream = io.StringIO()
    names = [field.name for field in fields(Row)]
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: plain_cell(value) for name, value in asdict(row).items()})
    return stream.getvalue()


def plain_cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return f"'{value}"
    return "" if value is None else value
