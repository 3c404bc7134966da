"""The archive: one SQLite file in the run folder with the run's journal and its models' messages.

A decision is stored in a transaction of its own before anything acts on it, so a kill loses only
work under way. The file is not trusted (`archive/sqlite_files.py`): reads are bounded and checked.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from eureka_agent.archive.files import (
    CLOSE_IT,
    FILE_NAME,
    is_busy,
    reason_of,
    rest_of_run,
    storage_error,
    storage_errors,
    write_text,
)
from eureka_agent.archive.safe_files import check_numbers, inside, load_json, read_plain
from eureka_agent.archive.sqlite_files import (
    BUSY_SECONDS,
    MOST_READ_BYTES,
    PLACES,
    ROW_BYTES,
    ResultT,
    attempt_row,
    check_files,
    connect,
    connect_to_copy,
    fetch,
    has_tables,
    make_tables,
    transaction,
    until_free,
)
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import command
from eureka_agent.journal.entries import KINDS, BaseEntry, kind_of
from eureka_agent.journal.progress import OF_RUN, PASSING
from eureka_agent.journal.state import Recorded, RunState, changed
from eureka_agent.records import Attempt, Cost, FinalTraining, Message, Record
from eureka_agent.settings import validation_fault

MOST_NUMBER = 2**62
MOST_TIME = 64
MOST_SECONDS = 1e10
MOST_VIEWS = 64
"""Earlier states in memory; others are folded again on demand."""
ENTRIES_AT_ONCE = 500
ENTRY_COLUMNS = "number, time, seconds, kind, version, record"
UNSTORED = "unstored"
"""Folder of replies that wait for the archive."""
MOST_UNWRITTEN = 200
"""Entries that wait to be stored with the next durable one."""

RecordT = TypeVar("RecordT", bound=Record)


def _are_seconds(value: object) -> bool:
    return isinstance(value, int | float) and 0.0 <= value <= MOST_SECONDS


def _listed(kinds: Iterable[str]) -> str:
    """Kinds as SQL's text constants."""
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))


def now() -> str:
    """Current time, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Archive:
    """The journal, the attempts as rows, and messages by their keys."""

    def __init__(self, folder: Path, *, reading: bool = False) -> None:
        """Open or create `folder/archive.sqlite`; a read-only file is opened for reading.
        `reading`: write and create nothing.

        Raises RunFolderError where it is not a database of this program, or the disk is full.
        """
        self.folder = folder
        self.seal: Callable[[str], str] | None = None
        """Signs new entries with this user's secret."""
        self.clock: Callable[[], float] = lambda: 0.0
        """Wall time of the run over all its processes, for new entries."""
        self._state: RunState | None = None
        self._facts, self._facts_number = RunState(), 0
        self._briefs: dict[str, Attempt] = {}
        self._briefs_number = 0
        self._accounts: dict[str, Message] = {}
        self._accounts_row = 0
        self.tell: Callable[[str], None] = lambda text: None
        """Gets a line when it waits for another program."""
        self.patient = True
        """False: give up where another program holds the file."""
        self._unwritten: list[Recorded] = []
        self._views: dict[int, RunState] = {}
        self.stands_still = False
        """True where a copy of the file is read, which later entries do not reach."""
        path = folder / FILE_NAME
        check_files(path, writing=not reading)
        try:
            self._reading = reading
            try:
                self._connection = connect(path, "ro" if reading else "rwc")
                made = has_tables(self._connection)
                if not (made or reading):
                    make_tables(self._connection)
            except sqlite3.OperationalError as error:
                if is_busy(error):
                    raise self._held(error) from None
                can_write = os.access(path, os.W_OK) and os.access(folder, os.W_OK)
                if not path.is_file() or (can_write and not reading):
                    raise
                self._reading = self.stands_still = True
                self._connection = connect_to_copy(path) if reading else connect(path, "immutable")
                made = has_tables(self._connection)
            if self._reading and not made:
                raise sqlite3.DatabaseError("it holds no tables")
        except sqlite3.OperationalError as error:
            raise storage_error(folder, error) from None
        except sqlite3.DatabaseError as error:
            raise RunFolderError(
                f"{str(path)!r} cannot be read as a run's archive: {reason_of(error)}",
                rest_of_run(folder) or f"is this a run folder? see `{command('runs')}`",
            ) from None
        if not self._reading:
            self._connection.execute(f"PRAGMA busy_timeout={int(1000 * BUSY_SECONDS)}")
            self._store_kept()
        self._number = self._last()[0]
        self._data_version = 0

    def close(self) -> None:
        """Store waiting entries and close the file."""
        self.patient = False
        with suppress(RunFolderError):
            self.flush()
        self._connection.close()

    def _read(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        def read() -> list[tuple[Any, ...]]:
            return fetch(self._connection, statement, values, bounded=self._reading)

        try:
            return read() if self._reading else self._patiently(read)
        except (sqlite3.DatabaseError, OverflowError) as error:  # a value may be any number
            if is_busy(error):
                raise self._held(error) from None
            raise self._damaged(reason_of(error)) from None

    def _write(self, *statements: tuple[str, Sequence[Sequence[object]]]) -> None:
        """Execute each statement with its rows of values, all or none. Raises RunFolderError."""

        def store() -> None:
            with transaction(self._connection):
                for statement, rows in statements:
                    self._connection.executemany(statement, rows)

        with storage_errors(self.folder):
            self._patiently(store)

    def _patiently(self, action: Callable[[], ResultT]) -> ResultT:
        """Result of an action, once no other program holds the file."""
        if not self.patient:
            return action()
        try:
            return until_free(action, self._tell_of_waiting)
        except sqlite3.Error:
            raise
        except BaseException:  # Ctrl-C: what ends the run does not wait again
            self.patient = False
            raise

    def _tell_of_waiting(self) -> None:
        path = self.folder / FILE_NAME
        self.tell(f"another program holds {str(path)!r}: the run goes on when it lets go")

    def _held(self, error: Exception) -> RunFolderError:
        path = self.folder / FILE_NAME
        return RunFolderError(f"cannot read {str(path)!r}: {reason_of(error)}", CLOSE_IT)

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

    # ── the journal ───────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> RunState:
        """Current state, after the entries of all processes."""
        ((version,),) = self._read("PRAGMA data_version")
        if self._state is None:
            self._state = self.state_at(None)
        elif version != self._data_version and not self._unwritten:
            self._fold(self._state, "number > ?", self._number)
        if version != self._data_version:
            self._data_version, (self._number, _) = version, self._last()
        return self._state

    def view(self) -> tuple[int, RunState]:
        """Immutable current state with the number of its last entry."""
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
        """Current state without the attempts, unless they were read already: many take long."""
        if self._state is not None:
            return self.state
        condition = f"number > ? AND kind IN ({_listed(OF_RUN)})"
        for recorded in self._entries(condition, (self._facts_number,)):
            self._facts.apply(recorded)
            self._facts_number = recorded.number
        self._facts.seconds = max(self._facts.seconds, self._last()[1])
        return self._facts

    def state_at(self, number: int | None) -> RunState:
        """State after the entry of this number; after the last one for None."""
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
            with self._known_attempts(recorded):
                state.apply(recorded)
        state.seconds = max(state.seconds, self._last()[1])

    @contextmanager
    def _known_attempts(self, recorded: Recorded) -> Iterator[None]:
        """Report an entry on an unknown attempt as damage."""
        try:
            yield
        except KeyError as error:
            raise self._damaged(f"entry {recorded.number} is about {error}, unknown") from None

    def append(self, entry: BaseEntry) -> Recorded:
        """Store an entry and those that wait; one that is not durable may wait."""
        state = self.state
        recorded = Recorded(self._number + 1, now(), max(self.clock(), state.seconds), entry)
        state.apply(recorded)
        self._number = recorded.number
        self._unwritten.append(recorded)
        if entry.durable or len(self._unwritten) >= MOST_UNWRITTEN:
            self.flush()
        return recorded

    def flush(self) -> None:
        """Store waiting entries. Raises RunFolderError where that fails; a later call retries."""
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
        self._write(
            ("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows),
            (f"INSERT OR REPLACE INTO attempts VALUES ({PLACES})", columns),
        )
        self._unwritten.clear()

    def entries(self, after: int = 0) -> Iterator[Recorded]:
        """All entries after the one of this number, in order."""
        return self._entries("number > ?", (after,))

    def _entries(self, condition: str, values: tuple[object, ...]) -> Iterator[Recorded]:
        """Entries that meet a condition, read in parts so short that they do not delay a writer."""
        after, size, full = 0, 0, True
        while full:
            rows = self._read(
                f"SELECT {ENTRY_COLUMNS} FROM journal WHERE {condition} AND number > ?"
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
                raise self._damaged(f"entry {number} of the journal has an impossible time")
            model = KINDS.get(kind)
            if model is None or version not in range(1, model.version + 1):
                raise self._damaged(
                    f"entry {number} of the journal is of the kind {str(kind)[:40]!r}, version"
                    f" {str(version)[:40]}, which this version of the program does not know"
                )
            entry = self._parsed(model, record, f"entry {number} of the journal")
            if "kind" not in entry.model_fields_set:
                raise self._damaged(f"entry {number} of the journal is without a kind")
            yield Recorded(int(number), time, float(seconds), entry)

    def _last(self) -> tuple[int, float]:
        """Number and seconds of the last stored entry."""
        rows = self._read("SELECT number, seconds FROM journal ORDER BY number DESC LIMIT 1")
        if rows and not _are_seconds(rows[0][1]):
            raise self._damaged("the last entry of the journal has an impossible time")
        return (int(rows[0][0]), float(rows[0][1])) if rows else (0, 0.0)

    def attempts(self, iteration: int | None = None) -> tuple[Attempt, ...]:
        """All attempts, or those of one iteration, in the order of iteration, sample, revision."""
        return self.state.attempts(iteration)

    def attempt(self, attempt_id: str) -> Attempt | None:
        """The attempt with this id, if any."""
        if self._state is not None:
            return self.state.by_id.get(attempt_id)
        known: dict[str, Attempt] = {}
        for recorded in self._entries("attempt = ? AND attempt != ''", (attempt_id,)):
            with self._known_attempts(recorded):
                known[attempt_id] = changed(known, recorded)
        return known.get(attempt_id)

    def attempts_in_brief(self) -> tuple[Attempt, ...]:
        """All attempts in that order, each with the fields of a list (`in_brief`). Only those with
        new entries are read again."""
        number = self._last()[0]
        rows = self._read(
            "SELECT brief FROM attempts WHERE ?1 = 0 OR id IN"
            " (SELECT attempt FROM journal WHERE number > ?1 AND attempt != '')",
            (self._briefs_number,),
        )
        read = [self._parsed(Attempt, brief) for (brief,) in rows]
        self._briefs |= {each.id: each for each in read}
        self._briefs_number = number
        chosen = self._briefs.values()
        return tuple(sorted(chosen, key=lambda each: (each.iteration, each.sample, each.revision)))

    def trainings(self) -> tuple[FinalTraining, ...]:
        """All final and baseline trainings, by name and seed."""
        return self.facts.trainings()

    # ── signature ─────────────────────────────────────────────────────────────────────────────────

    @property
    def signature(self) -> tuple[str, str] | None:
        """The run's id and signature; None for a run without."""
        rows = dict(self._read("SELECT key, value FROM run WHERE key IN ('id', 'signature')"))
        run_id, signature = rows.get("id"), rows.get("signature")
        if not (isinstance(run_id, str) and isinstance(signature, str)):
            return None
        return run_id, signature

    def set_signature(self, run_id: str, signature: str) -> None:
        """Store the run's id and signature."""
        rows = [("id", run_id), ("signature", signature)]
        self._write(("INSERT OR REPLACE INTO run VALUES (?, ?)", rows))

    def sealed(self, seal: Callable[[str], str]) -> bool:
        """True where all entries on attempts have this seal: nobody else changed or added one."""
        rows = self._read("SELECT number, record, seal FROM journal WHERE attempt != ''")
        return all(
            hmac.compare_digest(str(found).encode(), seal(f"{number} {record}").encode())
            for number, record, found in rows
        )

    def seal_all(self, seal: Callable[[str], str]) -> None:
        """Seal all stored entries and all new ones."""
        self.flush()
        self.seal = seal
        stale = [
            (expected, number)
            for number, record, found in self._read("SELECT number, record, seal FROM journal")
            if found != (expected := seal(f"{number} {record}"))
        ]
        self._write(("UPDATE journal SET seal = ? WHERE number = ?", stale))

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def find(self, key: str) -> Message | None:
        """Stored message of a content-addressed key, if any."""
        rows = self._read("SELECT record FROM messages WHERE key = ?", (key,))
        return self._parsed(Message, rows[0][0]) if rows else None

    def messages(self) -> tuple[Message, ...]:
        """All messages in the order of storage."""
        return tuple(self.keyed_messages().values())

    def messages_of(self, attempt: str) -> tuple[Message, ...]:
        """Messages about an attempt, in the order of storage."""
        rows = self._read(
            "SELECT record FROM messages WHERE attempt = ? ORDER BY rowid", (attempt,)
        )
        return tuple(self._parsed(Message, record) for (record,) in rows)

    def account(self) -> tuple[Message, ...]:
        """All messages in the order of storage, without their text, which sums do not need: a long
        search has megabytes. Only new ones are read."""
        rows = self._read(
            "SELECT rowid, key, role, model, attempt, cost FROM messages WHERE rowid > ?"
            " ORDER BY rowid",
            (self._accounts_row,),
        )
        for row, key, *texts, cost in rows:
            role, model, attempt = map(str, texts)
            parsed = self._parsed(Cost, cost)
            self._accounts.pop(str(key), None)  # a message that is replaced comes last
            self._accounts[str(key)] = Message(
                role=role, model=model, attempt=attempt, request="", reply="", cost=parsed
            )
            self._accounts_row = row
        return tuple(self._accounts.values())

    def keyed_messages(self) -> dict[str, Message]:
        """All messages by key, in the order of storage."""
        rows = self._read("SELECT key, record FROM messages ORDER BY rowid")
        return {key: self._parsed(Message, record) for key, record in rows}

    def put(self, key: str, message: Message) -> None:
        """Store a request with its reply, before the reply is used. While another program holds the
        archive, it is kept in a file beside it: it is paid."""
        columns = (key, message.model, message.role, message.attempt)
        records = (message.model_dump_json(), message.cost.model_dump_json())
        statement = (
            "INSERT OR REPLACE INTO messages (key, model, role, attempt, record, cost)"
            " VALUES (?, ?, ?, ?, ?, ?)"
        )
        kept = inside(self.folder, UNSTORED) / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
        try:
            with storage_errors(self.folder):
                self._connection.execute(statement, (*columns, *records))
        except RunFolderError as error:
            if not is_busy(error.__cause__ or error):
                raise
            write_text(kept, json.dumps([key, records[0]]))
            self._write((statement, [(*columns, *records)]))
            kept.unlink(missing_ok=True)

    def _store_kept(self) -> None:
        """Store the replies that an earlier process left beside the archive."""
        for path in sorted(inside(self.folder, UNSTORED).glob("*.json")):
            try:
                key, record = load_json(read_plain(path))
                message = self._parsed(Message, record, f"the reply {str(path)!r}")
                self.put(str(key), message)
                path.unlink(missing_ok=True)
            except (OSError, ValueError, TypeError) as error:
                raise self._damaged(f"the reply {str(path)!r} cannot be read: {error}") from None
