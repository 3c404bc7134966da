"""Archives of earlier versions: their tables become the journal's first entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from eureka_agent.archive.rows import PLACES, attempt_row
from eureka_agent.archive.safe_files import check_numbers, load_json
from eureka_agent.journal import entries as journal
from eureka_agent.journal.entries import BaseEntry, kind_of
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.records import Attempt, FinalTraining, Outcome, RunStatus

_MOST_ROWS = 100_000


def fill_journal(connection: sqlite3.Connection) -> None:
    """Write the journal from the database's facts, attempts and trainings, in the open transaction.
    Raises DatabaseError where one of them is damaged."""
    try:
        facts = {
            str(key): load_json(value)
            for key, value in connection.execute("SELECT key, value FROM run").fetchmany(1000)
        }
        if not facts and not connection.execute("SELECT 1 FROM old_attempts").fetchone():
            return
        time, seconds = str(facts.get("created", "")), float(facts.get("seconds", 0.0))
        state = RunState()
        for number, entry in enumerate(_entries(connection, facts), 1):
            state.apply(Recorded(number, time, seconds, entry))
            place = (number, time, seconds, kind_of(entry), entry.version, entry.of_attempt)
            connection.execute(
                "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, '')",
                (*place, entry.model_dump_json()),
            )
        # the signature covers the old facts: such a run counts as unsigned
        connection.execute("DELETE FROM run")
        rows = [attempt_row(each) for each in state.attempts()]
        connection.executemany(f"INSERT INTO attempts VALUES ({PLACES})", rows)
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        raise sqlite3.DatabaseError(
            f"what an earlier version wrote into it is damaged: {str(error).splitlines()[0][:200]}"
        ) from None


def _entries(connection: sqlite3.Connection, facts: dict[str, Any]) -> Iterator[BaseEntry]:
    budget = facts.get("budget") or {}
    names = (journal.RunCreated.model_fields.keys() & facts.keys()) - {"kind", "budget"}
    began = {name: facts[name] for name in names}
    began |= {"budget": budget.get("text", "")}
    began |= {"seconds_before": budget.get("seconds_before", 0.0)}
    yield journal.RunCreated.model_validate(began)
    for change in facts.get("settings_changes", ()):
        fields = {name: change[name] for name in ("name", "before", "now")}
        yield journal.SettingChanged.model_validate(fields)
    for record in _texts(connection, "SELECT record FROM old_attempts ORDER BY rowid"):
        fields = load_json(record)
        fields.pop("midway", None)  # a score at a rung, which decides nothing any more
        yield journal.AttemptImported(record=Attempt.model_validate(fields))
    for name, seed, failure, cached, retries, outcome in connection.execute(
        "SELECT name, seed, failure, cached, retries, outcome FROM trainings ORDER BY name, seed"
    ).fetchmany(_MOST_ROWS):
        known = None if outcome is None else Outcome.model_validate_json(outcome)
        yield journal.FinalTrained(
            training=FinalTraining(
                name=name,
                seed=seed,
                outcome=known,
                failure=failure,
                cached=bool(cached),
                retries=retries,
            )
        )
    yield from _decisions(facts)
    yield journal.RunEnded(
        status=RunStatus(facts.get("status", RunStatus.RUNNING.value)),
        message=str(facts.get("message", "")),
    )


def _decisions(facts: dict[str, Any]) -> Iterator[BaseEntry]:
    if "gate_loosened" in facts:
        yield journal.GateLoosened.model_validate(facts["gate_loosened"])
    if isinstance(facts.get("baselines_not_awaited"), str):
        yield journal.BaselinesNotAwaited(limit=facts["baselines_not_awaited"])
    if "stopped_by_budget" in facts:
        stopped = facts["stopped_by_budget"]
        yield journal.DeadlineReached(
            limit=stopped["budget"], iterations=stopped["iterations"], text=stopped["text"]
        )
    if "budget_for_models_spent" in facts:
        yield journal.ModelBudgetSpent.model_validate(facts["budget_for_models_spent"])
    if facts.get("ended_early"):
        yield journal.SearchEndedEarly(text=facts["ended_early"])


def _texts(connection: sqlite3.Connection, statement: str) -> Iterator[str]:
    for (text,) in connection.execute(statement).fetchmany(_MOST_ROWS):
        check_numbers(text)
        yield text
