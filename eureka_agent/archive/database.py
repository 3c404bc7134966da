"""The archive: one SQLite file in the run folder that remembers every attempt, final training and
message.

A row is written at every change of stage, in a transaction of its own, so a kill at any moment
loses only what was under way. The file may be a stranger's (`archive/sqlite_files.py`): what is
read of it is bounded and checked.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from eureka_agent.archive.facts import checked_fact
from eureka_agent.archive.migrations import applied_migrations, migrate
from eureka_agent.archive.safe_files import check_numbers, load_json
from eureka_agent.archive.sqlite_files import check_files, connect, connect_to_copy, fetch
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.invocation import command
from eureka_agent.records import Attempt, FinalTraining, Message, Outcome, Record
from eureka_agent.settings import validation_fault

FILE_NAME = "archive.sqlite"
_FULL_BYTES = 256 * 1024
"""With less than this free a disk counts as full: SQLite needs room for pages and a journal, files
for their drafts."""


def resume_command(run: Path) -> str:
    """What to type to go on with a run, as one line for any shell."""
    return command(shlex.join(["resume", str(run)]))


def run_of(path: Path) -> Path | None:
    """The run folder that a path lies in, or is; None outside of one."""
    return next(
        (folder for folder in (path, *path.parents) if (folder / FILE_NAME).is_file()), None
    )


def rest_of_run(run: Path) -> str:
    """Hint on what is left of a run whose archive is lost; empty for a folder that is no run's."""
    if not (run / "settings.yaml").is_file():
        return ""
    readable = [
        str(path) for name in ("report.md", "best", "attempts") if (path := run / name).exists()
    ]
    rest = (
        f"what can still be read: {', '.join(readable)}"
        if readable
        else "nothing else is left to read"
    )
    return f"put a copy of it back if you have one: nothing else restores the run; {rest}"


RecordT = TypeVar("RecordT", bound=Record)


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn a full or unwritable disk under `folder` into a RunFolderError that says how to go
    on."""
    try:
        yield
    except sqlite3.Error as error:
        raise _storage_error(folder, _reason(error), "full" in str(error)) from error
    except IsADirectoryError as error:
        path = str(error.filename2 or error.filename)  # of a rename the target
        raise RunFolderError(
            f"cannot write {path!r}: it is a folder, expected a file", "name a file"
        ) from error
    except OSError as error:
        raise _storage_error(
            folder, system_reason(error), error.errno in (errno.ENOSPC, errno.EDQUOT)
        ) from error


def _storage_error(folder: Path, reason: str, full: bool) -> RunFolderError:
    hint = (
        "free some space"
        if full or _no_room(folder)
        else "check the folder's permissions and the disk"
    )
    run = run_of(folder)
    then = "try again" if run is None else f"`{resume_command(run)}`"
    return RunFolderError(
        f"cannot write to {str(run or folder)!r}: {reason}", f"{hint}, then {then}"
    )


_REASONS = {
    "file is not a database": "it is no SQLite database",
    "database disk image is malformed": "its content is damaged",
    "database or disk is full": "the disk is full",
    "disk I/O error": "the disk cannot be read or written",
    "unable to open database file": "it cannot be opened",
    "attempt to write a readonly database": "it can only be read",
    "database is locked": "another program holds it",
}
"""SQLite's sentences in plain words."""


def _reason(error: Exception) -> str:
    return _REASONS.get(str(error), str(error))


def _no_room(folder: Path) -> bool:
    """Whether the disk has no room left. SQLite calls that a full disk or an I/O error, by which of
    its files it happens to."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free < _FULL_BYTES
    return False


def _read_only(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


class Archive:
    """Attempts, final trainings, messages and the run's own facts, by key."""

    def __init__(self, folder: Path, *, reading: bool = False) -> None:
        """Open or make `folder/archive.sqlite`; one that cannot be written to is opened for
        reading. `reading`: nothing is written, or made.

        Raises RunFolderError where it is not a database of this program, or the disk is full.
        """
        self.folder = folder
        self.seal: Callable[[str], str] | None = None
        """Signs the attempts that are written, in the name of this user."""
        path = folder / FILE_NAME
        check_files(path, writing=not reading)
        try:
            self._reading = reading
            try:
                self._connection = connect(path, "ro" if reading else "rwc")
                applied = applied_migrations(self._connection)
                if not reading:
                    migrate(self._connection)
            except sqlite3.OperationalError:
                writable = (
                    os.access(path, os.W_OK)
                    and os.access(folder, os.W_OK)
                    and not _read_only(folder)
                )
                if not path.is_file() or (writable and not reading):
                    raise
                self._reading = True
                self._connection = connect_to_copy(path) if reading else connect(path, "immutable")
                applied = applied_migrations(self._connection)
            if self._reading and not applied:
                raise sqlite3.DatabaseError("it holds no tables")
        except sqlite3.OperationalError as error:
            raise _storage_error(folder, _reason(error), "full" in str(error)) from None
        except sqlite3.DatabaseError as error:
            raise RunFolderError(
                f"{str(path)!r} cannot be read as a run's archive: {_reason(error)}",
                rest_of_run(folder) or f"is this a run folder? see `{command('runs')}`",
            ) from None

    def close(self) -> None:
        """Close the file; the archive cannot be used after it."""
        self._connection.close()

    def _read(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return fetch(self._connection, statement, values, bounded=self._reading)
        except (
            sqlite3.DatabaseError,
            OverflowError,
        ) as error:  # a number that is asked for may be any
            raise self._damaged(_reason(error)) from None

    def _parsed(self, model: type[RecordT], text: object) -> RecordT:
        try:
            if not isinstance(text, str):
                raise ValueError(f"it is {type(text).__name__}, expected text")
            if self._reading:
                check_numbers(text)
            return model.model_validate_json(text)
        except ValueError as error:  # pydantic's too
            reason = validation_fault(error) if isinstance(error, ValidationError) else str(error)
            raise self._damaged(f"a record of {model.__name__} is broken: {reason}") from None

    def _damaged(self, reason: str) -> RunFolderError:
        path = self.folder / FILE_NAME
        return RunFolderError(
            f"the archive {str(path)!r} is damaged: {reason}",
            rest_of_run(self.folder) or "restore it, or start a new search",
        )

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        with storage_errors(self.folder):
            self._connection.execute(statement, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            if self._connection.in_transaction:  # a full disk ends it by itself
                self._connection.execute("ROLLBACK")
            raise

    # ── the run's own facts ───────────────────────────────────────────────────────────────────────

    def set_fact(self, key: str, value: Any) -> None:
        """Store a JSON value under `key`."""
        self.set_facts({key: value})

    def set_facts(self, facts: Mapping[str, Any]) -> None:
        """Store JSON values by key, all of them or none."""
        rows = [(key, json.dumps(value)) for key, value in facts.items()]
        with storage_errors(self.folder), self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def fact(self, key: str, default: Any = None) -> Any:
        """The JSON value under `key`."""
        rows = self._read("SELECT value FROM run WHERE key = ?", (key,))
        if not rows:
            return default
        try:
            return checked_fact(key, load_json(rows[0][0]))
        except (ValueError, TypeError) as error:
            raise self._damaged(f"what it says of {key!r} is broken: {error}") from None

    # ── attempts ──────────────────────────────────────────────────────────────────────────────────

    def put_attempt(self, attempt: Attempt) -> None:
        """Insert the attempt or replace what was known of it."""
        self._write(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
                record := attempt.model_dump_json(),
                "" if self.seal is None else self.seal(record),
            ),
        )

    def attempts(self, iteration: int | None = None) -> tuple[Attempt, ...]:
        """All attempts, or those of one iteration, in the order of iteration, sample, revision."""
        order = "ORDER BY iteration, sample, revision"
        if iteration is None:
            rows = self._read(f"SELECT record FROM attempts {order}")
        else:
            rows = self._read(
                f"SELECT record FROM attempts WHERE iteration = ? {order}", (iteration,)
            )
        return tuple(self._parsed(Attempt, record) for (record,) in rows)

    def attempt(self, attempt_id: str) -> Attempt | None:
        """The attempt with this id."""
        rows = self._read("SELECT record FROM attempts WHERE id = ?", (attempt_id,))
        return self._parsed(Attempt, rows[0][0]) if rows else None

    def sealed(self, seal: Callable[[str], str]) -> bool:
        """True when all attempts have this seal: none was changed or put there by somebody else."""
        if self._reading and "0004_seal_of_an_attempt" not in applied_migrations(self._connection):
            return False
        rows = self._read("SELECT record, seal FROM attempts")
        return all(
            hmac.compare_digest(str(found).encode(), seal(str(record)).encode())
            for record, found in rows
        )

    def seal_all(self, seal: Callable[[str], str]) -> None:
        """Seal the attempts that are there, and all that are written from now on."""
        self.seal = seal
        rows = self._read("SELECT id, record, seal FROM attempts")
        stale = [
            (seal(str(record)), name) for name, record, found in rows if found != seal(str(record))
        ]
        with storage_errors(self.folder), self._transaction():
            self._connection.executemany("UPDATE attempts SET seal = ? WHERE id = ?", stale)

    # ── final trainings and baselines ─────────────────────────────────────────────────────────────

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
        rows = self._read(
            "SELECT name, seed, failure, cached, retries, outcome FROM trainings ORDER BY name,"
            " seed"
        )
        try:
            return tuple(
                FinalTraining(
                    name=name,
                    seed=seed,
                    failure=failure,
                    cached=bool(cached),
                    retries=retries,
                    outcome=None if outcome is None else self._parsed(Outcome, outcome),
                )
                for name, seed, failure, cached, retries, outcome in rows
            )
        except ValidationError as error:
            raise self._damaged(f"a final training is broken: {error.errors()[0]['msg']}") from None

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def find(self, key: str) -> Message | None:
        """The stored message under a content-addressed key."""
        rows = self._read("SELECT record FROM messages WHERE key = ?", (key,))
        return self._parsed(Message, rows[0][0]) if rows else None

    def messages(self) -> tuple[Message, ...]:
        """All stored messages, in the order in which they were stored."""
        return tuple(self.keyed_messages().values())

    def account(self) -> tuple[Message, ...]:
        """The same without what was said: a long search has megabytes of that, and sums need none
        of it."""
        rows = self._read(
            "SELECT json_set(record, '$.request', '', '$.reply', '') FROM messages ORDER BY rowid"
        )
        return tuple(self._parsed(Message, record) for (record,) in rows)

    def keyed_messages(self) -> dict[str, Message]:
        """All of them by their keys."""
        rows = self._read("SELECT key, record FROM messages ORDER BY rowid")
        return {key: self._parsed(Message, record) for key, record in rows}

    def put(self, key: str, message: Message) -> None:
        """Store a request with its reply; called before the reply is used."""
        self._write(
            "INSERT OR REPLACE INTO messages (key, model, role, attempt, record) VALUES (?, ?, ?,"
            " ?, ?)",
            (key, message.model, message.role, message.attempt, message.model_dump_json()),
        )
