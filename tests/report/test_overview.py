"""Lists and the terminal show a run without reading its whole journal."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console
from told import ended, judged, proposed

from eureka_agent.archive.run_folder import Run, create_run, open_run
from eureka_agent.journal.entries import (
    AttemptRepeated,
    FinalTrained,
    Notice,
    Reviewed,
    RunEnded,
    RungScored,
)
from eureka_agent.records import (
    Attempt,
    Cost,
    FinalTraining,
    Finding,
    Message,
    Repeat,
    RungScore,
    RunStatus,
    Stage,
    TaskDescription,
    Verdict,
)
from eureka_agent.report.ledger import Ledger, ledger_to_json
from eureka_agent.report.tables import render_run, render_runs
from eureka_agent.search.summary import run_overview, run_report
from eureka_agent.settings import SearchSettings

COST = Cost(prompt_tokens=3000, completion_tokens=400, seconds=12.0, money=Decimal("0.0123"))


def tell(run: Run, attempt: Attempt, *rungs: RungScore) -> None:
    """Write an attempt's entries."""
    run.archive.append(proposed(attempt))
    run.archive.append(judged(attempt))
    for score in rungs:
        run.archive.append(RungScored(attempt=attempt.id, score=score))
    if attempt.stage in (Stage.TRAINED, Stage.FAILED):
        run.archive.append(ended(attempt))


@pytest.fixture
def folder(
    tmp_path: Path,
    attempt: Callable[..., Attempt],
    description: TaskDescription,
    settings: SearchSettings,
) -> Path:
    """A run with an attempt of every stage, repeats, finals, remarks and requests."""
    run = create_run(settings, description, ["eureka", "search", "jump"], parent=tmp_path)
    best = attempt("1-01", Stage.TRAINED, 1.5, finding="height makes up 97 % of the reward")
    assert best.outcome is not None
    tell(run, best, RungScore(env_steps=700, fitness=1.25))
    tell(run, attempt("1-02", Stage.REJECTED, reason="unknown variable 'heigth'"))
    tell(run, attempt("1-03", Stage.FAILED, reason="the reward turned NaN"))
    stopped = attempt("1-04", Stage.FAILED, reason="fitness 0.5, behind the median of 1.5")
    tell(
        run, stopped, RungScore(env_steps=400, fitness=0.25), RungScore(env_steps=704, fitness=0.5)
    )
    tell(run, attempt("2-01", Stage.TRAINED, 1.75, parents=("1-01",), retries=1))
    tell(run, attempt("2-02", Stage.ACCEPTED))
    run.archive.append(proposed(attempt("2-03", Stage.PROPOSED)))
    turned_down = Finding(code="R001", severity="error", message="it rewards falling")
    tell(run, attempt("2-04", Stage.ACCEPTED))
    run.archive.append(Reviewed(attempt="2-04", verdict=Verdict(findings=(turned_down,))))
    for seed, fitness in ((8, 2.5), (9, None)):
        outcome = best.outcome.model_copy(update={"fitness": fitness})
        made = Repeat(iteration=0, seed=seed, outcome=outcome if fitness else None, failure="NaN")
        run.archive.append(AttemptRepeated(attempt="1-01", repeat=made))
    for name, fitness in (("1-01", 2.0), ("human", 1.0), ("sparse", 0.5)):
        for seed in (3, 4, 5):
            outcome = best.outcome.model_copy(update={"fitness": fitness + seed / 10})
            training = FinalTraining(name=name, seed=seed, outcome=outcome)
            run.archive.append(FinalTrained(training=training))
    run.archive.append(Notice(text="one core only"))
    for number, cost in enumerate((COST, Cost(seconds=3.0), COST)):
        words = Message(
            role="designer", model="m", attempt="1-01", request="?", reply="!", cost=cost
        )
        run.archive.put(f"key {number}", words)
    run.archive.append(RunEnded(status=RunStatus.FINISHED))
    run.archive.close()
    return run.folder


def shown(render: object, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(render)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 160])
def test_an_overview_shows_what_the_whole_journal_shows(folder: Path, width: int) -> None:
    run = open_run(folder, reading=True)
    whole = run_report(run)
    run.archive.close()
    run = open_run(folder, reading=True)
    overview = run_overview(run)
    text = shown(render_run(overview), width)
    assert text == shown(render_run(whole), width)
    for part in ("97 %", "heigth", "NaN", "falling", "at 70 %"):
        assert part in text
    assert shown(render_runs([overview]), width) == shown(render_runs([whole]), width)
    assert overview.best == whole.best
    assert overview.cost == whole.cost
    assert ledger_to_json(overview.ledger) == ledger_to_json(Ledger(run.archive.messages()))
    run.archive.close()


def test_one_attempt_is_read_whole_without_the_others(folder: Path) -> None:
    run = open_run(folder, reading=True)
    whole = {each.id: each for each in run.archive.attempts()}
    run.archive.close()
    run = open_run(folder, reading=True)
    assert {name: run.archive.attempt(name) for name in whole} == whole
    assert run.archive.attempt("9-99") is None
    run.archive.close()


def test_lists_read_no_entry_of_an_attempt_but_the_best(folder: Path) -> None:
    """Lists take no longer for a run of thousands of attempts. Unreadable entries of the others do
    no harm."""
    with sqlite3.connect(folder / "archive.sqlite") as connection:
        connection.execute("UPDATE journal SET record = 'x' WHERE attempt NOT IN ('', '1-01')")
        connection.execute("UPDATE journal SET record = 'x' WHERE kind = 'notice'")
    connection.close()
    run = open_run(folder, reading=True)
    assert "1-01 (best)" in shown(render_run(run_overview(run)), 120)
    run.archive.close()


def test_what_another_process_writes_is_known_at_the_next_look(folder: Path) -> None:
    reader, writer = open_run(folder, reading=True), open_run(folder)
    assert reader.status is RunStatus.FINISHED
    writer.archive.append(RunEnded(status=RunStatus.FAILED, message="it broke"))
    assert reader.status is RunStatus.FAILED
    assert run_overview(reader).message == "it broke"
    for run in (reader, writer):
        run.archive.close()
