"""The archive: one SQLite file in the run folder that remembers every attempt, final training and message.

A row is written at every change of stage, in a transaction of its own, so a kill at any moment loses only what was under way.
"""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eureka_agent.archive.migrations import migrate
from eureka_agent.errors import RunFolderError
from eureka_agent.records import Attempt, FinalTraining, Message, Outcome

FILE_NAME = "archive.sqlite"


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn a full or unwritable disk under `folder` into a RunFolderError that says how to go on."""
    try:
        yield
    except sqlite3.Error as error:
        raise _storage_error(folder, str(error), "full" in str(error)) from error
    except OSError as error:
        raise _storage_error(
            folder, error.strerror or str(error), error.errno in (errno.ENOSPC, errno.EDQUOT)
        ) from error


def _storage_error(folder: Path, reason: str, full: bool) -> RunFolderError:
    hint = "free some space" if full else "check the folder's permissions and the disk"
    return RunFolderError(
        f"cannot write to the run folder {str(folder)!r}: {reason}", f"{hint}, then `eureka resume {folder}`"
    )


class Archive:
    """Attempts, final trainings, messages and the run's own facts, by key."""

    def __init__(self, folder: Path) -> None:
        """Open or make `folder/archive.sqlite`. Raises RunFolderError where it is not a database or the disk is full."""
        self.folder = folder
        try:
            self._connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None, timeout=10.0)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            migrate(self._connection)
        except sqlite3.DatabaseError as error:
            if "full" in str(error):
                raise _storage_error(folder, str(error), full=True) from None
            raise RunFolderError(
                f"{str(folder / FILE_NAME)!r} cannot be read as a run's archive: {error}",
                "is this a run folder? see `eureka runs`",
            ) from None

    def close(self) -> None:
        """Close the file; the archive cannot be used after it."""
        self._connection.close()

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        with storage_errors(self.folder):
            self._connection.execute(statement, values)

    # ── the run's own facts ─────────────────────────────────────────────────────────────────────────────────────────

    def set_fact(self, key: str, value: Any) -> None:
        """Store a JSON value under `key`."""
        self._write("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, json.dumps(value)))

    def fact(self, key: str, default: Any = None) -> Any:
        """The JSON value under `key`."""
        row = self._connection.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    # ── attempts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def put_attempt(self, attempt: Attempt) -> None:
        """Insert the attempt or replace what was known of it."""
        self._write(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                attempt.id,
                attempt.iteration,
                attempt.sample,
                attempt.revision,
                attempt.proposal.operator.value,
                attempt.stage.value,
                attempt.reason,
                attempt.fitness,
                attempt.retries,
                attempt.created,
                attempt.model_dump_json(),
            ),
        )

    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts in the order of iteration, sample, revision."""
        rows = self._connection.execute("SELECT record FROM attempts ORDER BY iteration, sample, revision")
        return tuple(Attempt.model_validate_json(record) for (record,) in rows)

    def attempt(self, attempt_id: str) -> Attempt | None:
        """The attempt with this id."""
        row = self._connection.execute("SELECT record FROM attempts WHERE id = ?", (attempt_id,)).fetchone()
        return None if row is None else Attempt.model_validate_json(row[0])

    # ── final trainings and baselines ───────────────────────────────────────────────────────────────────────────────

    def put_training(self, training: FinalTraining) -> None:
        """Record one finished final or baseline training."""
        outcome = training.outcome
        self._write(
            "INSERT OR REPLACE INTO trainings VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                training.name,
                training.seed,
                None if outcome is None else outcome.fitness,
                training.failure,
                int(training.cached),
                training.retries,
                None if outcome is None else outcome.model_dump_json(),
            ),
        )

    def trainings(self) -> tuple[FinalTraining, ...]:
        """All final and baseline trainings, by name and seed."""
        rows = self._connection.execute(
            "SELECT name, seed, failure, cached, retries, outcome FROM trainings ORDER BY name, seed"
        )
        return tuple(
            FinalTraining(
                name=name,
                seed=seed,
                failure=failure,
                cached=bool(cached),
                retries=retries,
                outcome=None if outcome is None else Outcome.model_validate_json(outcome),
            )
            for name, seed, failure, cached, retries, outcome in rows
        )

    # ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, key: str) -> Message | None:
        """The stored message under a content-addressed key."""
        row = self._connection.execute("SELECT record FROM messages WHERE key = ?", (key,)).fetchone()
        return None if row is None else Message.model_validate_json(row[0])

    def messages(self) -> tuple[Message, ...]:
        """All stored messages."""
        return tuple(
            Message.model_validate_json(row) for (row,) in self._connection.execute("SELECT record FROM messages")
        )

    def put(self, key: str, message: Message) -> None:
        """Store a request with its reply; called before the reply is used."""
        self._write(
            "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?)",
            (key, message.model, message.role, message.model_dump_json()),
        )
