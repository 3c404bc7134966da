"""The queue of a batch: `batch.sqlite` in its folder, with searches and events."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from eureka_agent import __version__
from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.archive.sqlite_files import check_files, connect
from eureka_agent.archive.storage_errors import is_full, reason_of
from eureka_agent.errors import DiskFullError, EurekaError, RunFolderError, did_you_mean
from eureka_agent.invocation import command

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Form of a search's name, which is the name of its folder."""
SCHEMA = 1
"""Version of the tables; a batch of another one is refused."""
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
        with self._errors():
            check_files(path, writing=not reading)
            self._connection = connect(path, "ro" if reading else "rwc")
            self._open(make)

    def _open(self, make: bool) -> None:
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables and make:
            self._connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
            self.put("schema", str(SCHEMA))
            self.put("version", __version__)
        found = self.get("schema") if tables or make else None
        if found != str(SCHEMA):
            raise RunFolderError(
                f"the batch {str(self.folder)!r} was made by version"
                f" {self.get('version') or 'unknown'} of this program, whose queue has the form"
                f" {found}, expected {SCHEMA}",
                "go on with that version, or start the batch in another --folder; its runs can be"
                " shown by this one",
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise (DiskFullError if is_full(error, self.folder) else RunFolderError)(
                f"the queue {str(self.folder / BATCH_FILE)!r} cannot be used: {reason_of(error)}",
                "free some space or look at its permissions, then give the same command again",
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def get(self, name: str) -> str | None:
        """A fact on the batch."""
        with self._errors():
            row = self._connection.execute(
                "SELECT value FROM about WHERE name = ?", (name,)
            ).fetchone()
        return None if row is None else str(row[0])

    def put(self, name: str, value: str) -> None:
        """Store a fact on the batch."""
        with self._errors():
            self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def entries(self) -> tuple[Entry, ...]:
        """All searches in the file's order."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT name, settings, state, tries, message FROM searches ORDER BY position, name"
            ).fetchall()
        for name, *_ in rows:
            if not NAME.fullmatch(name):  # somebody else may have made the file
                raise RunFolderError(
                    f"the queue {str(self.folder / BATCH_FILE)!r} has a search {name[:100]!r},"
                    " which no batch of this program has",
                    "do not trust who made this folder",
                )
        return tuple(
            Entry(name, json.loads(settings), State(state), tries, message)
            for name, settings, state, tries, message in rows
        )

    def entry(self, name: str) -> Entry:
        """One search. Raises EurekaError for a name that no search has."""
        entries = {entry.name: entry for entry in self.entries()}
        if name not in entries:
            raise EurekaError(f"no search {name!r} in this batch", did_you_mean(name, entries))
        return entries[name]

    def add(self, searches: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Queue new searches, all or none."""
        with self._errors():
            self._connection.execute("BEGIN")
            first = self._connection.execute("SELECT count(*) FROM searches").fetchone()[0]
            self._connection.executemany(
                "INSERT INTO searches VALUES (?, ?, ?, ?, 0, '')",
                [
                    (name, first + number, _json(settings), State.WAITING.value)
                    for number, (name, settings) in enumerate(searches)
                ],
            )
            self._connection.execute("COMMIT")

    def change_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Store new settings of a search."""
        with self._errors():
            self._connection.execute(
                "UPDATE searches SET settings = ? WHERE name = ?", (_json(settings), name)
            )

    def set_state(self, name: str, state: State, message: str = "", tries: int = 0) -> Event:
        """Store the state of a search, and the event of its change."""
        with self._errors():
            self._connection.execute("BEGIN")
            self._connection.execute(
                "UPDATE searches SET state = ?, message = ?, tries = ? WHERE name = ?",
                (state.value, message, tries, name),
            )
            event = self._insert_event(name, state.value, message)
            self._connection.execute("COMMIT")
        return event

    def record(self, kind: str, text: str = "", search: str | None = None) -> Event:
        """Store an event."""
        with self._errors():
            return self._insert_event(search, kind, text)

    def _insert_event(self, search: str | None, kind: str, text: str) -> Event:
        event = Event(time.time(), search, kind, text)
        self._connection.execute(
            "INSERT INTO events (time, search, kind, text) VALUES (?, ?, ?, ?)",
            (event.time, search, kind, text),
        )
        return event

    def last_events(self, most: int) -> tuple[Event, ...]:
        """The last events, newest first."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT time, search, kind, text FROM events ORDER BY id DESC LIMIT ?", (most,)
            ).fetchall()
        return tuple(Event(*row) for row in rows)


def _json(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)
