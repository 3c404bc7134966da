"""The archive's schema as named steps; a released step is never edited."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from eureka_agent.archive.earlier_versions import fill_journal
from eureka_agent.archive.sqlite_files import schema_of

_OWN_TABLE = "CREATE TABLE migrations (name TEXT PRIMARY KEY)"
_MOST = 100
MIGRATIONS: list[tuple[str, str]] = [
    (
        "0001_run_attempts_trainings",
        """
        CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE attempts (
            id TEXT PRIMARY KEY,
            iteration INTEGER NOT NULL,
            sample INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            operator TEXT NOT NULL,
            stage TEXT NOT NULL,
            reason TEXT NOT NULL,
            fitness REAL,
            retries INTEGER NOT NULL,
            created TEXT NOT NULL,
            record TEXT NOT NULL,
            UNIQUE (iteration, sample, revision)
        );
        CREATE TABLE trainings (
            name TEXT NOT NULL,
            seed INTEGER NOT NULL,
            fitness REAL,
            failure TEXT NOT NULL,
            cached INTEGER NOT NULL,
            retries INTEGER NOT NULL,
            outcome TEXT,
            PRIMARY KEY (name, seed)
        );
        """,
    ),
    (
        "0002_messages",
        """
        CREATE TABLE messages (
            key TEXT PRIMARY KEY, model TEXT NOT NULL, role TEXT NOT NULL, record TEXT NOT NULL
        );
        """,
    ),
    (
        "0003_attempt_of_a_message",
        "ALTER TABLE messages ADD COLUMN attempt TEXT NOT NULL DEFAULT '';",
    ),
    ("0004_seal_of_an_attempt", "ALTER TABLE attempts ADD COLUMN seal TEXT NOT NULL DEFAULT '';"),
    (
        "0005_journal",
        """
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
        ALTER TABLE attempts RENAME TO old_attempts;
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
        ALTER TABLE messages ADD COLUMN cost TEXT NOT NULL DEFAULT '{}';
        UPDATE messages SET cost = coalesce(json_extract(record, '$.cost'), '{}');
        """,
    ),
]
_LAST_STATEMENTS = ("DROP TABLE old_attempts", "DROP TABLE trainings")
"""Statements after the journal is filled from these tables."""


def applied_migrations(connection: sqlite3.Connection) -> list[str]:
    """Names of the steps that a database has seen; none for an empty one. Raises DatabaseError for
    any other schema than that of these steps."""
    objects = schema_of(connection)
    if not objects:
        return []
    known = [name for name, _ in MIGRATIONS]
    seen: list[str] = []
    if ("table", "migrations", _OWN_TABLE) in objects:
        rows = connection.execute("SELECT name FROM migrations ORDER BY name")
        seen = [name for (name,) in rows.fetchmany(_MOST)]
    if not seen or seen != known[: len(seen)]:
        raise sqlite3.DatabaseError("it has migrations that this version does not know")
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(fresh, MIGRATIONS[: len(seen)])
        expected = schema_of(fresh)
    finally:
        fresh.close()
    if strange := objects ^ expected:
        kind, name, _ = min(strange, key=str)
        fault = f"its {kind} {str(name)[:100]!r} is missing or unknown to this program"
        raise sqlite3.DatabaseError(fault)
    return seen


def migrate(
    connection: sqlite3.Connection, steps: Sequence[tuple[str, str]] = MIGRATIONS
) -> list[str]:
    """Apply the missing steps, each in a transaction of its own. Returns their names."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        connection.execute(_OWN_TABLE)
    seen = {name for (name,) in connection.execute("SELECT name FROM migrations")}
    applied = []
    for name, script in steps:
        if name in seen:
            continue
        try:
            connection.executescript(f"BEGIN; {script}")
            if name == "0005_journal":
                fill_journal(connection)
                for statement in _LAST_STATEMENTS:
                    connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?)", (name,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        applied.append(name)
    return applied


def migrated_copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Migrated copy in memory, for reading. Closes the original connection."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copy)
    connection.close()
    migrate(copy)
    copy.execute("PRAGMA query_only=ON")
    return copy
