"""The archive's tables. A database with others is not read."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from eureka_agent.archive.sqlite_files import schema_of

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
