"""Summary of a batch: a row for each search, for the terminal and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.archive.files import FILE_NAME, write_text
from eureka_agent.archive.run_folder import reading
from eureka_agent.batch.folder import ENDED, UNDER_WAY, BatchSearch, SearchState
from eureka_agent.batch.intents import BatchEvent
from eureka_agent.errors import RunFolderError
from eureka_agent.records import RunStatus, Stage
from eureka_agent.report.verdict import best_fitness, fitness_text, why_not_normalized
from eureka_agent.search.summary import run_overview
from eureka_agent.text import one_line

NUMBERS = ("generations", "trained", "best fitness", "human", "vs human", "time")
COLUMNS = ("search", "state", "task", *NUMBERS)
LEGEND = (
    "Trained: of the attempts, those trained to their end. Fitness: mean ± standard deviation over"
    " fresh seeds. Vs human: 1 is the human reward, 0 the sparse one; no number where they cannot"
    " be told apart."
)
_LONGEST_TASK, _LONGEST_TEXT = 60, 300
_STYLES = {
    "finished": "green",
    "failed": "red",
    "running": "cyan",
    **dict.fromkeys(("cancelled", "stopped", "paused", "cancelling"), "yellow"),
}


@dataclass(frozen=True)
class SummaryRow:
    """One search in the summary. Texts have units and deviations."""

    search: str
    state: str
    task: str = ""
    sentence: str = ""
    designer: str = ""
    seed: int | None = None
    generations: str = ""
    """Generations that have ended, of how many: `2/3`."""
    trained: int = 0
    attempts: int = 0
    best: str = ""
    best_fitness: float | None = None
    human: str = ""
    human_fitness: float | None = None
    fitness_unit: str = ""
    human_normalized: float | None = None
    """1 is the human reward, 0 the sparse one."""
    why_not_normalized: str = ""
    env_steps: int = 0
    money: Decimal | None = None
    """US dollars; None where unknown."""
    seconds: float = 0.0
    message: str = ""


def row_to_json(row: SummaryRow) -> dict[str, Any]:
    """A row; money is a decimal number in a string, None where unknown."""
    return {**asdict(row), "money": None if row.money is None else str(row.money)}


class Summary:
    """Rows of a batch's searches. A search that is not under way is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, SearchState, str], SummaryRow] = {}

    def rows(self, searches: Sequence[BatchSearch]) -> list[SummaryRow]:
        found = []
        for each in searches:
            key = each.name, each.state, each.message
            row = self._known.get(key) or _row(self._folder, each)
            if each.state not in UNDER_WAY:
                self._known[key] = row
            found.append(row)
        return found

    def write(self, searches: Sequence[BatchSearch], state: str) -> list[SummaryRow]:
        """Write all summaries. `state`: the batch's state in words."""
        rows, title = self.rows(searches), self._folder.name
        write_text(self._folder / "summary.md", markdown(title, state, rows))
        return rows


def _row(folder: Path, search: BatchSearch) -> SummaryRow:
    if not (folder / search.name / FILE_NAME).is_file():
        return SummaryRow(search.name, search.state.value, message=search.message)
    try:
        with reading(str(folder / search.name)) as run:
            report, ended = run_overview(run), len(run.archive.facts.iterations_ended)
    except RunFolderError as error:
        return SummaryRow(search.name, search.state.value, message=error.message)
    score, human = report.best_score, report.score("human")
    best = None if score is None else score.mean
    if best is None and report.best is not None and report.by_strength is None:
        best = report.best.fitness
    description = report.description
    # the batch's command goes on with it, not the one that its run names
    goes_on = report.status is RunStatus.STOPPED and search.state not in ENDED
    return SummaryRow(
        search.name,
        search.state.value,
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
        search.message or ("" if goes_on else report.message),
    )


def counts(rows: Sequence[SummaryRow]) -> dict[str, str]:
    unknown = any(row.money is None for row in rows if row.attempts)
    money = sum((row.money or Decimal(0) for row in rows), Decimal(0))
    return {
        "searches": str(len(rows)),
        **{state: str(number) for state, number in Counter(row.state for row in rows).items()},
        "trained": f"{sum(row.trained for row in rows):,}",
        "env steps": wording.count(sum(row.env_steps for row in rows)),
        "on models": wording.MISSING if unknown else f"${money:,.2f}",
    }


def cells(row: SummaryRow) -> tuple[str, ...]:
    trained = f"{row.trained}/{row.attempts}" if row.attempts else ""
    versus = row.why_not_normalized or wording.number(row.human_normalized)
    time = wording.duration(row.seconds) if row.seconds else ""
    numbers = (row.generations, trained, row.best, row.human, versus, time)
    task = one_line(row.task, _LONGEST_TASK)
    return (row.search, row.state, task, *(each or wording.MISSING for each in numbers))


def by_column(row: SummaryRow) -> dict[str, str]:
    """The cells of a row by their titles."""
    return dict(zip(COLUMNS, cells(row), strict=True))


def markdown(title: str, state: str, rows: Sequence[SummaryRow]) -> str:
    facts = ", ".join(f"{value} {name}" for name, value in counts(rows).items())
    table = [COLUMNS, ["---"] * len(COLUMNS), *map(cells, rows)]
    lines = [f"# {title}", "", f"{state}. {facts}.", "", LEGEND, ""]
    lines += [f"| {' | '.join(cell.replace('|', '¦') for cell in line)} |" for line in table]
    told = [f"- **{name}**: {text}" for name, text in _messages(rows)]
    return "\n".join([*lines, *([""] if told else []), *told]) + "\n"


def _messages(rows: Sequence[SummaryRow]) -> list[tuple[str, str]]:
    return [(row.search, one_line(row.message, _LONGEST_TEXT)) for row in rows if row.message]


def render_rows(rows: Sequence[SummaryRow]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    for row in rows:
        name, state, *rest = cells(row)
        table.add_row(name, Text(state, _STYLES.get(state, "")), *rest)
    totals = ", ".join(f"{number} {name}" for name, number in counts(rows).items())
    told = [Text(f"{name}: {text}") for name, text in _messages(rows)]
    return Group(table, Text(totals, style="dim"), *told)


class BatchView:
    """A line for each event; on a terminal above the table of `eureka batch status`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        )

    def __enter__(self) -> BatchView:
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def event(self, event: BatchEvent) -> None:
        """Write `22:15:01 walkers-hopper: finished`."""
        search = f"{event.search}:" if event.search else ""
        parts = (search, event.kind, one_line(event.text, _LONGEST_TEXT))
        line = f"{datetime.fromtimestamp(event.time):%H:%M:%S} {' '.join(filter(None, parts))}"
        self._console.print(Text(line, style=_STYLES.get(event.kind, "")), soft_wrap=True)

    def rows(self, rows: Sequence[SummaryRow]) -> None:
        if self._live.is_started:
            self._live.update(render_rows(rows), refresh=True)
