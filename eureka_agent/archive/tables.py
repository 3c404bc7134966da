"""The archive's tables, and an attempt as a row of one: a projection of the journal, for lists. A
database with other tables is not read."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from eureka_agent.archive.sqlite_files import schema_of
from eureka_agent.records import Attempt, Cost, Outcome, Proposal, Verdict

PLACES = ", ".join("?" * 13)
"""SQL placeholders for a row."""


def attempt_row(attempt: Attempt) -> tuple[object, ...]:
    """Row of an attempt."""
    return (
        attempt.id,
        attempt.iteration,
        attempt.sample,
        attempt.revision,
        attempt.proposal.operator.value,
        " ".join(attempt.proposal.parents),
        attempt.stage.value,
        attempt.reason,
        attempt.fitness,
        len(attempt.fitness_per_seed),
        attempt.retries,
        attempt.created,
        in_brief(attempt).model_dump_json(exclude_defaults=True),
    )


def in_brief(attempt: Attempt) -> Attempt:
    """Attempt with the fields of a list: no sources, texts and curves; the first error, the
    analyzer's first finding, and without a fitness the last scored rung."""
    findings = attempt.verdict.findings if attempt.verdict is not None else ()
    errors = tuple(each for each in findings if each.severity == "error")[:1]
    diagnosis = attempt.diagnosis
    if diagnosis is not None and not diagnosis.findings:
        diagnosis = None
    elif diagnosis is not None:
        nothing = {"fitness_values": (), "episode_length_values": (), "components": (), "text": ""}
        diagnosis = diagnosis.model_copy(update={**nothing, "findings": diagnosis.findings[:1]})
    scored = [] if attempt.fitness is not None else attempt.rungs
    rungs = [each for each in scored if each.fitness is not None][-1:]
    return attempt.model_copy(
        update={
            "proposal": brief_proposal(attempt.proposal),
            "verdict": Verdict(findings=errors) if errors else None,
            "outcome": _outcome_in_brief(attempt.outcome),
            "rungs": tuple(each.model_copy(update={"evaluation": None}) for each in rungs),
            "diagnosis": diagnosis,
            "analysis": "",
            "repeats": tuple(
                each.model_copy(update={"outcome": _outcome_in_brief(each.outcome)})
                for each in attempt.repeats
            ),
        }
    )


def brief_proposal(proposal: Proposal) -> Proposal:
    """Proposal without source and texts."""
    nothing = {"reasoning": "", "prompt": "", "reply": "", "cost": Cost()}
    return proposal.model_copy(update={"reward": proposal.reward.with_source(""), **nothing})


def _outcome_in_brief(outcome: Outcome | None) -> Outcome | None:
    return outcome and outcome.model_copy(update={"checkpoints": (), "ended_by": {}})


VERSION = 2
"""Raised by every change of the tables, or of what the journal's entries mean."""
_TABLES = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    seconds REAL NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    attempt TEXT NOT NULL,
    record TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE INDEX journal_of_attempt ON journal (attempt) WHERE attempt != '';
CREATE INDEX journal_by_kind ON journal (kind);
CREATE TABLE attempts (
    id TEXT PRIMARY KEY,
    iteration INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    operator TEXT NOT NULL,
    parents TEXT NOT NULL,
    stage TEXT NOT NULL,
    reason TEXT NOT NULL,
    fitness REAL,
    trainings INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    created TEXT NOT NULL,
    brief TEXT NOT NULL
);
CREATE INDEX attempts_by_fitness ON attempts (fitness);
CREATE TABLE messages (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    role TEXT NOT NULL,
    record TEXT NOT NULL,
    attempt TEXT NOT NULL DEFAULT '',
    cost TEXT NOT NULL DEFAULT '{}'
);
"""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty database."""
    connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")


def has_tables(connection: sqlite3.Connection) -> bool:
    """False for an empty database. Raises DatabaseError for other tables than this program's."""
    objects = schema_of(connection)
    if not objects:
        return False
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise sqlite3.DatabaseError(
            f"its tables are of version {version}, and this program reads version {VERSION}"
        )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        make_tables(fresh)
        expected = schema_of(fresh)
    if strange := objects ^ expected:
        kind, name, _ = min(strange, key=str)
        fault = f"its {kind} {str(name)[:100]!r} is missing or unknown to this program"
        raise sqlite3.DatabaseError(fault)
    return True
