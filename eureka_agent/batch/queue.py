"""The queue of a batch: `batch.sqlite` in its folder, with searches and events.

The file is not trusted (`archive/sqlite_files.py`): it has exactly these tables, and reads are
bounded and checked.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, Json, TypeAdapter, ValidationError

from eureka_agent import __version__
from eureka_agent.archive.database import MOST_SECONDS
from eureka_agent.archive.files import CLOSE_IT, is_busy, is_full, reason_of
from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.archive.sqlite_files import (
    BUSY_SECONDS,
    ResultT,
    check_files,
    connect,
    fetch,
    schema_of,
    transaction,
    until_free,
)
from eureka_agent.errors import DiskFullError, EurekaError, RunFolderError, did_you_mean
from eureka_agent.invocation import command
from eureka_agent.text import LONGEST_TEXT, printable

RowT = TypeVar("RowT")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Form of a search's name, which is the name of its folder."""
SCHEMA = 1
"""Version of the tables; a batch of another one is refused."""
_LONGEST_FACT = 1000
_INSERT_EVENT = "INSERT INTO events (time, search, kind, text) VALUES (?, ?, ?, ?)"
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE searches (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    message TEXT NOT NULL
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, search TEXT, kind TEXT NOT NULL, text TEXT NOT NULL
);
"""


class State(StrEnum):
    """State of a search in a batch."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    """Under way, but nothing new begins in it."""
    STOPPED = "stopped"
    """Saved when the batch was stopped; the next call goes on with it."""
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Ended by a person; only `eureka batch resume` goes on with it."""


Printable = Annotated[str, AfterValidator(lambda text: printable(text[:LONGEST_TEXT]))]
_SEARCH: TypeAdapter[tuple[str, dict[str, Any], State, int, str]] = TypeAdapter(
    tuple[
        Annotated[str, Field(pattern=rf"^{NAME.pattern}$")],
        Json[dict[str, Any]],
        State,
        Annotated[int, Field(ge=0)],
        Printable,
    ]
)
_EVENT: TypeAdapter[tuple[float, str | None, str, str]] = TypeAdapter(
    tuple[Annotated[float, Field(ge=0, le=MOST_SECONDS)], Printable | None, Printable, Printable]
)
ENDED = (State.FINISHED, State.FAILED, State.CANCELLED)
"""States from which a batch does not go on by itself."""
CANCELLING = "cancelling"
"""State in words of a search whose trainings are saved before it is cancelled."""
_STATES = frozenset(state.value for state in State)


@dataclass(frozen=True)
class Entry:
    """One search of the queue."""

    name: str
    settings: Mapping[str, Any]
    """Settings by name, as the batch file gives them."""
    state: State
    tries: int
    """Failed tries in this call of the command."""
    message: str
    """The last error, or how to go on."""


@dataclass(frozen=True)
class Event:
    """One event of a batch."""

    time: float
    """Seconds since 1970."""
    search: str | None
    kind: str
    text: str

    @property
    def state(self) -> State | None:
        """The search's new state; None for another kind of event."""
        return State(self.kind) if self.search is not None and self.kind in _STATES else None


class Queue:
    """Searches and events of a batch, stored before anything acts on them."""

    def __init__(self, folder: Path, *, reading: bool = False, make: bool = False) -> None:
        """Open the queue in a folder. `reading`: change nothing; `make`: make it where there is
        none. Raises RunFolderError for another folder or another version's batch."""
        self.folder = folder
        path = folder / BATCH_FILE
        if not path.is_file() and not make:
            raise RunFolderError(
                f"{str(folder)!r} is not a batch: it has no {BATCH_FILE}",
                f"`{command('batches')}` lists the batches there are",
            )
        self.tell: Callable[[str], None] = lambda text: None
        """Gets a line when it waits for another program."""
        self._reading = reading
        with self._errors():
            check_files(path, writing=not reading)
            self._connection = connect(path, "ro" if reading else "rwc")
            self._open(make)
            if not reading:
                self._connection.execute(f"PRAGMA busy_timeout={int(1000 * BUSY_SECONDS)}")

    def _open(self, make: bool) -> None:
        tables, expected = schema_of(self._connection), _own_schema()
        if not tables and make:
            self._connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
            self.put("schema", str(SCHEMA))
            self.put("version", __version__)
            return
        # a view or another table of that name is not read
        is_readable = any(each in expected for each in tables if each[1] == "about")
        found = self.get("schema") if is_readable else None
        if found != str(SCHEMA):
            version = self.get("version") if is_readable else None
            raise RunFolderError(
                f"the batch {str(self.folder)!r} was made by version {version or 'unknown'} of this"
                f" program, whose queue has the form {found}, expected {SCHEMA}",
                "go on with that version, or start the batch in another --folder; its runs can be"
                " shown by this one",
            )
        if strange := sorted(tables ^ expected, key=str):
            kind, name, _ = strange[0]
            raise self._foreign(f"the {kind} {str(name)[:100]!r} too many, too few or another one")

    def _foreign(self, what: str) -> RunFolderError:
        path = str(self.folder / BATCH_FILE)
        return RunFolderError(
            f"the queue {path!r} has {what}, which no batch of this program has",
            "do not trust who made this folder",
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            hint = "free some space or look at its permissions"
            raise (DiskFullError if is_full(error, self.folder) else RunFolderError)(
                f"the queue {str(self.folder / BATCH_FILE)!r} cannot be used: {reason_of(error)}",
                f"{CLOSE_IT if is_busy(error) else hint}, then give the same command again",
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _held_off(self, action: Callable[[], ResultT]) -> ResultT:
        """Result of an action. A process that works on the batch waits for other programs."""
        with self._errors():
            return action() if self._reading else until_free(action, self._tell_of_waiting)

    def _tell_of_waiting(self) -> None:
        path = str(self.folder / BATCH_FILE)
        self.tell(f"another program holds {path!r}: the batch goes on when it lets go")

    def _read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._held_off(lambda: fetch(self._connection, statement, values, bounded=True))

    def _write(self, *statements: tuple[str, Sequence[object]]) -> None:
        """Execute statements with their values, all or none."""

        def store() -> None:
            with transaction(self._connection):
                for statement, values in statements:
                    self._connection.execute(statement, values)

        self._held_off(store)

    def get(self, name: str) -> str | None:
        """A fact on the batch."""
        rows = self._read("SELECT value FROM about WHERE name = ?", name)
        return printable(str(rows[0][0]))[:_LONGEST_FACT] if rows else None

    def put(self, name: str, value: str) -> None:
        """Store a fact on the batch."""
        self._write(("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value)))

    def entries(self) -> tuple[Entry, ...]:
        """All searches in the file's order."""
        rows = self._read(
            "SELECT name, settings, state, tries, message FROM searches ORDER BY position, name"
        )
        return tuple(Entry(*self._valid(_SEARCH, row, "search")) for row in rows)

    def _valid(self, kind: TypeAdapter[RowT], row: tuple[Any, ...], what: str) -> RowT:
        try:
            return kind.validate_python(row)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            shown = repr(fault["input"])[:100]
            raise self._foreign(f"a {what} with {shown}") from None

    def entry(self, name: str) -> Entry:
        """One search. Raises EurekaError for a name that no search has."""
        entries = {entry.name: entry for entry in self.entries()}
        if name not in entries:
            raise EurekaError(f"no search {name!r} in this batch", did_you_mean(name, entries))
        return entries[name]

    def add(self, searches: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Queue new searches, all or none."""
        first = self._read("SELECT count(*) FROM searches")[0][0]
        self._write(
            *(
                (
                    "INSERT INTO searches VALUES (?, ?, ?, ?, 0, '')",
                    (name, first + number, _json(settings), State.WAITING.value),
                )
                for number, (name, settings) in enumerate(searches)
            )
        )

    def change_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Store new settings of a search."""
        self._write(("UPDATE searches SET settings = ? WHERE name = ?", (_json(settings), name)))

    def set_state(self, name: str, state: State, message: str = "", tries: int = 0) -> Event:
        """Store the state of a search, and the event of its change."""
        event = Event(time.time(), name, state.value, message)
        changed = (state.value, message, tries, name)
        self._write(
            ("UPDATE searches SET state = ?, message = ?, tries = ? WHERE name = ?", changed),
            (_INSERT_EVENT, astuple(event)),
        )
        return event

    def record(self, kind: str, text: str = "", search: str | None = None) -> Event:
        """Store an event."""
        event = Event(time.time(), search, kind, text)
        self._write((_INSERT_EVENT, astuple(event)))
        return event

    def last_events(self, most: int) -> tuple[Event, ...]:
        """The last events, newest first."""
        rows = self._read(
            "SELECT time, search, kind, text FROM events ORDER BY id DESC LIMIT ?", most
        )
        return tuple(Event(*self._valid(_EVENT, row, "event")) for row in rows)


@cache
def _own_schema() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(_TABLES)
        return schema_of(fresh)


def _json(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)
