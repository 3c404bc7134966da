"""The archive: one SQLite file in the run folder that holds the run's journal and the messages of
its models.

What is decided is written before anybody acts on it, in a transaction of its own, so a kill at any
moment loses only what was under way. The file may be a stranger's (`archive/sqlite_files.py`): what
is read of it is bounded and checked.
"""

from __future__ import annotations

import errno
import hmac
import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from eureka_agent.archive.migrations import (
    MIGRATIONS,
    applied_migrations,
    migrate,
    migrated_copy,
)
from eureka_agent.archive.rows import PLACES, attempt_row
from eureka_agent.archive.safe_files import check_numbers
from eureka_agent.archive.sqlite_files import (
    MOST_READ_BYTES,
    ROW_BYTES,
    check_files,
    connect,
    connect_to_copy,
    fetch,
)
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.invocation import command
from eureka_agent.journal.entries import KINDS, OF_RUN, PASSING, BaseEntry, kind_of
from eureka_agent.journal.state import Recorded, RunState, changed
from eureka_agent.records import Attempt, Cost, FinalTraining, Message, Record
from eureka_agent.settings import validation_fault

FILE_NAME = "archive.sqlite"
MOST_NUMBER = 2**62
MOST_TIME = 64
"""Characters of an entry's time."""
MOST_SECONDS = 1e10
MOST_VIEWS = 64
"""Earlier states that are kept in memory; others are folded again where one is asked for."""
ENTRIES_AT_ONCE = 500
_COLUMNS = "number, time, seconds, kind, version, record"
MOST_UNWRITTEN = 200
"""Entries that wait to be stored with the next durable one."""
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


def _are_seconds(value: object) -> bool:
    return isinstance(value, int | float) and 0.0 <= value <= MOST_SECONDS


def _listed(kinds: Iterable[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))


def now() -> str:
    """The present, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Archive:
    """The journal, the attempts as rows, and messages by their keys."""

    def __init__(self, folder: Path, *, reading: bool = False) -> None:
        """Open or make `folder/archive.sqlite`; one that cannot be written to is opened for
        reading. `reading`: nothing is written, or made.

        Raises RunFolderError where it is not a database of this program, or the disk is full.
        """
        self.folder = folder
        self.seal: Callable[[str], str] | None = None
        """Signs the entries that are written, in the name of this user."""
        self.clock: Callable[[], float] = lambda: 0.0
        """Wall time of the run over all its processes: what entries are stamped with."""
        self._state: RunState | None = None
        self._facts: tuple[int, RunState] | None = None
        """With the version of the file's data that they were read from."""
        self._unwritten: list[Recorded] = []
        self._views: dict[int, RunState] = {}
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
            if self._reading and len(applied) < len(MIGRATIONS):
                self._connection = migrated_copy(self._connection)
        except sqlite3.OperationalError as error:
            raise _storage_error(folder, _reason(error), "full" in str(error)) from None
        except sqlite3.DatabaseError as error:
            raise RunFolderError(
                f"{str(path)!r} cannot be read as a run's archive: {_reason(error)}",
                rest_of_run(folder) or f"is this a run folder? see `{command('runs')}`",
            ) from None

        self._number = self._last()[0]
        self._data_version = 0

    def close(self) -> None:
        """Close the file; the archive cannot be used after it."""
        with suppress(RunFolderError):
            self.flush()
        self._connection.close()

    def _read(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return fetch(self._connection, statement, values, bounded=self._reading)
        except (
            sqlite3.DatabaseError,
            OverflowError,
        ) as error:  # a number that is asked for may be any
            raise self._damaged(_reason(error)) from None

    def _parsed(self, model: type[RecordT], text: object, what: str = "") -> RecordT:
        try:
            if not isinstance(text, str):
                raise ValueError(f"it is {type(text).__name__}, expected text")
            if self._reading:
                check_numbers(text)
            return model.model_validate_json(text)
        except ValueError as error:  # pydantic's too
            reason = validation_fault(error) if isinstance(error, ValidationError) else str(error)
            what = what or f"a record of {model.__name__}"
            raise self._damaged(f"{what} is broken: {reason}") from None

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

    # ── the journal ───────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> RunState:
        """What the run knows by its entries up to now, those of other processes included."""
        ((version,),) = self._read("PRAGMA data_version")
        if self._state is None:
            self._state = self.state_at(None)
        elif version != self._data_version and not self._unwritten:
            self._fold(self._state, "number > ?", self._number)
        if version != self._data_version:
            self._data_version, (self._number, _) = version, self._last()
        return self._state

    def view(self) -> tuple[int, RunState]:
        """What the run knows now, as it stays, with the number of the last entry that it rests
        on."""
        number = self._number
        if number not in self._views:
            self._keep_view(number, self.state.copy())
        return number, self._views[number]

    def _keep_view(self, number: int, state: RunState) -> None:
        if len(self._views) >= MOST_VIEWS:
            del self._views[min(self._views)]
        self._views[number] = state

    @property
    def facts(self) -> RunState:
        """The same without the attempts, where these were not read yet: of many they take long."""
        if self._state is not None:
            return self.state
        ((version,),) = self._read("PRAGMA data_version")
        if self._facts is None or self._facts[0] != version:
            facts = RunState()
            rows = self._read(
                f"SELECT {_COLUMNS} FROM journal WHERE kind IN ({_listed(OF_RUN)}) ORDER BY number"
            )
            for recorded in self._recorded(rows):
                facts.apply(recorded)
            facts.seconds = max(facts.seconds, self._last()[1])
            self._facts = version, facts
        return self._facts[1]

    def state_at(self, number: int | None) -> RunState:
        """What it knew after the entry of this number; after the last one for None."""
        if number is not None and number in self._views:
            return self._views[number]
        self.flush()
        state = RunState()
        self._fold(state, "number <= ?", MOST_NUMBER if number is None else number)
        if number is not None:
            self._keep_view(number, state)
        return state

    def _fold(self, state: RunState, condition: str, number: int) -> None:
        chosen = f"{condition} AND kind NOT IN ({_listed(PASSING)})"
        for recorded in self._entries(chosen, (number,)):
            try:
                state.apply(recorded)
            except KeyError as error:
                raise self._damaged(f"entry {recorded.number} is about {error}, unknown") from None
        state.seconds = max(state.seconds, self._last()[1])

    def append(self, entry: BaseEntry) -> Recorded:
        """Store an entry, with those before it that wait to be, before anybody acts on it. One that
        is not durable may be stored with the next one."""
        state = self.state
        recorded = Recorded(self._number + 1, now(), max(self.clock(), state.seconds), entry)
        state.apply(recorded)
        self._number = recorded.number
        self._unwritten.append(recorded)
        if entry.durable or len(self._unwritten) >= MOST_UNWRITTEN:
            self.flush()
        return recorded

    def flush(self) -> None:
        """Store the entries that are not yet. Raises RunFolderError where they cannot be; a later
        call tries again."""
        if not self._unwritten:
            return
        rows = []
        for each in self._unwritten:
            record = each.entry.model_dump_json()
            seal = "" if self.seal is None else self.seal(f"{each.number} {record}")
            place = (each.number, each.time, each.seconds, kind_of(each.entry), each.entry.version)
            rows.append((*place, each.entry.of_attempt, record, seal))
        changed = {each.entry.of_attempt for each in self._unwritten} - {""}
        columns = [attempt_row(self.state.by_id[name]) for name in sorted(changed)]
        with storage_errors(self.folder), self._transaction():
            self._connection.executemany(
                "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows
            )
            self._connection.executemany(
                f"INSERT OR REPLACE INTO attempts VALUES ({PLACES})", columns
            )
        self._unwritten.clear()

    def entries(self, after: int = 0) -> Iterator[Recorded]:
        """All entries behind the one of this number, in their order."""
        return self._entries("number > ?", (after,))

    def _entries(self, condition: str, values: tuple[object, ...]) -> Iterator[Recorded]:
        """Those that meet the condition: read so few at once that whoever writes meanwhile is not
        held up."""
        after, size, full = 0, 0, True
        while full:
            rows = self._read(
                f"SELECT {_COLUMNS} FROM journal WHERE {condition} AND number > ?"
                f" ORDER BY number LIMIT {ENTRIES_AT_ONCE}",
                (*values, after),
            )
            size += sum(ROW_BYTES + len(str(row[-1])) for row in rows)
            if self._reading and size > MOST_READ_BYTES:
                raise self._damaged(f"its journal holds more than {MOST_READ_BYTES} bytes")
            yield from self._recorded(rows)
            full = len(rows) == ENTRIES_AT_ONCE
            after = rows[-1][0] if rows else after

    def _recorded(self, rows: list[tuple[Any, ...]]) -> Iterator[Recorded]:
        for number, time, seconds, kind, version, record in rows:
            if not (isinstance(time, str) and len(time) <= MOST_TIME and _are_seconds(seconds)):
                raise self._damaged(f"entry {number} of the journal has no time that could be")
            model = KINDS.get(kind)
            if model is None or version not in range(1, model.version + 1):
                raise self._damaged(
                    f"entry {number} of the journal is of the kind {str(kind)[:40]!r}, version"
                    f" {str(version)[:40]}, which this version of the program does not know"
                )
            entry = self._parsed(model, record, f"entry {number} of the journal")
            if "kind" not in entry.model_fields_set:
                raise self._damaged(f"entry {number} of the journal is of no kind")
            yield Recorded(int(number), time, float(seconds), entry)

    def _last(self) -> tuple[int, float]:
        """Number and seconds of the last entry that is stored."""
        rows = self._read("SELECT number, seconds FROM journal ORDER BY number DESC LIMIT 1")
        if rows and not _are_seconds(rows[0][1]):
            raise self._damaged("the last entry of the journal has no time that could be")
        return (int(rows[0][0]), float(rows[0][1])) if rows else (0, 0.0)

    def attempts(self, iteration: int | None = None) -> tuple[Attempt, ...]:
        """All attempts, or those of one iteration, in the order of iteration, sample, revision."""
        return self.state.attempts(iteration)

    def attempt(self, attempt_id: str) -> Attempt | None:
        """The attempt with this id."""
        if self._state is not None:
            return self.state.by_id.get(attempt_id)
        known: dict[str, Attempt] = {}
        for recorded in self._entries("attempt = ? AND attempt != ''", (attempt_id,)):
            try:
                known[attempt_id] = changed(known, recorded)
            except KeyError as error:
                raise self._damaged(f"entry {recorded.number} is about {error}, unknown") from None
        return known.get(attempt_id)

    def attempts_in_brief(self) -> tuple[Attempt, ...]:
        """All attempts in that order, each with what a line of a list shows of it
        (`archive/rows.py`)."""
        rows = self._read("SELECT brief FROM attempts ORDER BY iteration, sample, revision")
        return tuple(self._parsed(Attempt, brief) for (brief,) in rows)

    def trainings(self) -> tuple[FinalTraining, ...]:
        """All final and baseline trainings, by name and seed."""
        return self.facts.trainings()

    # ── whose run it is ───────────────────────────────────────────────────────────────────────────

    @property
    def signature(self) -> tuple[str, str] | None:
        """The run's id and its signature; None for a run that is not signed."""
        rows = dict(self._read("SELECT key, value FROM run WHERE key IN ('id', 'signature')"))
        found = (rows.get("id"), rows.get("signature"))
        if not all(isinstance(each, str) for each in found):
            return None
        return str(found[0]), str(found[1])

    def set_signature(self, run_id: str, signature: str) -> None:
        """Store the run's id and its signature."""
        with storage_errors(self.folder), self._transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO run VALUES (?, ?)",
                [("id", run_id), ("signature", signature)],
            )

    def sealed(self, seal: Callable[[str], str]) -> bool:
        """True when all entries that tell of attempts have this seal: none was changed or put there
        by somebody else."""
        rows = self._read("SELECT number, record, seal FROM journal WHERE attempt != ''")
        return all(
            hmac.compare_digest(str(found).encode(), seal(f"{number} {record}").encode())
            for number, record, found in rows
        )

    def seal_all(self, seal: Callable[[str], str]) -> None:
        """Seal the entries that are there, and all that are written from now on."""
        self.flush()
        self.seal = seal
        stale = []
        for number, record, found in self._read("SELECT number, record, seal FROM journal"):
            expected = seal(f"{number} {record}")
            if found != expected:
                stale.append((expected, number))
        with storage_errors(self.folder), self._transaction():
            self._connection.executemany("UPDATE journal SET seal = ? WHERE number = ?", stale)

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
        return tuple(
            Message(
                role=str(role),
                model=str(model),
                attempt=str(attempt),
                request="",
                reply="",
                cost=self._parsed(Cost, cost),
            )
            for role, model, attempt, cost in self._read(
                "SELECT role, model, attempt, cost FROM messages ORDER BY rowid"
            )
        )

    def keyed_messages(self) -> dict[str, Message]:
        """All of them by their keys."""
        rows = self._read("SELECT key, record FROM messages ORDER BY rowid")
        return {key: self._parsed(Message, record) for key, record in rows}

    def put(self, key: str, message: Message) -> None:
        """Store a request with its reply; called before the reply is used."""
        self._write(
            "INSERT OR REPLACE INTO messages (key, model, role, attempt, record, cost)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                key,
                message.model,
                message.role,
                message.attempt,
                message.model_dump_json(),
                message.cost.model_dump_json(),
            ),
        )
