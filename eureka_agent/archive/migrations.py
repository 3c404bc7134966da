"""The archive's schema as a list of named steps. Append only: a released step is never edited, a change is a new step."""

from __future__ import annotations

import sqlite3

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
        CREATE TABLE messages (key TEXT PRIMARY KEY, model TEXT NOT NULL, role TEXT NOT NULL, record TEXT NOT NULL);
        """,
    ),
    (
        "0003_attempt_of_a_message",
        """
        ALTER TABLE messages ADD COLUMN attempt TEXT NOT NULL DEFAULT '';
        """,
    ),
]


def migrate(connection: sqlite3.Connection) -> list[str]:
    """Apply the steps that this database has not seen, each in a transaction of its own; returns their names."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        connection.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY)")
    seen = {name for (name,) in connection.execute("SELECT name FROM migrations")}
    applied = []
    for name, script in MIGRATIONS:
        if name in seen:
            continue
        connection.executescript(f"BEGIN; {script} INSERT INTO migrations VALUES ('{name}'); COMMIT;")
        applied.append(name)
    return applied
