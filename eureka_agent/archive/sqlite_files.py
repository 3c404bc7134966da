"""Untrusted SQLite files: checks before they are opened, and bounded reads.

SQLite trusts the files beside its own. A journal can name another file, which is removed when the
journal is played back; a write-ahead log can have any length. This program writes neither, so both
are refused.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from eureka_agent.archive.files import is_busy
from eureka_agent.archive.safe_files import copy_plain, inside, open_plain
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.records import Attempt, Cost, Outcome, Proposal, Verdict

ResultT = TypeVar("ResultT")

MOST_VALUE_BYTES = 64 << 20
"""Longest value; a request to a model with its reply has a few hundred kilobytes."""
MOST_READ_BYTES = 256 << 20
ROW_BYTES = 1000
"""Memory of a row's record beside its values."""
READING_SECONDS = 10.0
OPENING_SECONDS = 10.0
BUSY_SECONDS = 2.0
"""Time of one try to read or write while another program holds the file. Between two tries Ctrl-C
is heard."""
_STEPS_BETWEEN_CHECKS = 100_000
_ROWS_AT_ONCE = 100
_MOST_OBJECTS = 100
_NAMES_ANOTHER_FILE = bytes.fromhex("d9d505f920a163d7")
"""Last bytes of such a journal, by SQLite's file format (section 3, "super-journal"). Every journal
begins with the same bytes."""
_JOURNAL_HEADER_BYTES = 28
_ROLLBACK_JOURNAL = b"\x01\x01"
"""Bytes 18 and 19 of a file without a log."""


def check_files(path: Path, *, writing: bool) -> None:
    """Raises RunFolderError for a database or files beside it that are not this program's."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        file = inside(path.parent, path.name + suffix)
        flags = os.O_RDWR if writing and os.access(file, os.W_OK) else os.O_RDONLY
        try:
            with os.fdopen(open_plain(file, flags)) as handle:
                reason = _fault(handle.fileno(), suffix)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunFolderError(
                f"{str(file)!r} cannot be opened: {system_reason(error)}",
                "copy the run folder, and use the copy",
            ) from None
        if reason:
            raise RunFolderError(
                f"{str(file)!r} {reason}, which no run of this program has",
                "do not trust who made this folder",
            )


def _fault(descriptor: int, suffix: str) -> str:
    size = os.fstat(descriptor).st_size
    # a shorter journal is just being begun by another process, and names nothing yet
    if suffix == "-journal" and size > _JOURNAL_HEADER_BYTES:
        magic = os.pread(descriptor, len(_NAMES_ANOTHER_FILE), size - len(_NAMES_ANOTHER_FILE))
        if magic == _NAMES_ANOTHER_FILE:
            return "names another file"
    if suffix == "-wal" and size:
        return "is a write-ahead log"
    is_database = size >= 100 and os.pread(descriptor, 16, 0) == b"SQLite format 3\0"
    if suffix == "" and is_database and os.pread(descriptor, 2, 18) != _ROLLBACK_JOURNAL:
        return "asks for a write-ahead log"
    return ""


def connect(path: Path, mode: Literal["rwc", "ro", "immutable"]) -> sqlite3.Connection:
    """Connection that does not trust its file, for one thread."""
    how = "immutable=1" if mode == "immutable" else f"mode={mode}"
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{how}",
        uri=True,
        isolation_level=None,
        timeout=OPENING_SECONDS,
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
    for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        connection.execute(f"PRAGMA {setting}")
    if mode != "rwc":
        connection.execute("PRAGMA query_only=ON")
    return connection


def until_free(action: Callable[[], ResultT], told: Callable[[], None]) -> ResultT:
    """Result of an action on a database, which is tried until no other program holds the file.
    `told` is called once, where it has to wait."""
    waits = False
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            if not waits:
                told()
            waits = True


def schema_of(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Type, name and SQL of a database's tables, indices, views and triggers, of many the first.

    A file with exactly the expected ones holds no endless view, computed column or trigger.
    """
    statement = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    return frozenset(connection.execute(statement).fetchmany(_MOST_OBJECTS))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that the block writes, or nothing of it."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise


def connect_to_copy(path: Path) -> sqlite3.Connection:
    """Database before the unfinished write of a killed process: its journal is played back in a
    copy. Raises OperationalError where there is no journal, or no room for the copy."""
    journal = path.with_name(f"{path.name}-journal")
    if not journal.is_file():
        raise sqlite3.OperationalError("it cannot be read")
    with tempfile.TemporaryDirectory(prefix="eureka-") as folder:
        try:
            for file in (journal, path):
                copy_plain(file, Path(folder) / file.name)
        except OSError as error:
            reason = f"its copy cannot be made: {system_reason(error)}"
            raise sqlite3.OperationalError(reason) from None
        connection = connect(Path(folder) / path.name, "rwc")
        # read now: the open file outlives its name
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("PRAGMA query_only=ON")
    return connection


def fetch(
    connection: sqlite3.Connection, statement: str, values: tuple[object, ...], *, bounded: bool
) -> list[tuple[Any, ...]]:
    """All rows of a statement. `bounded`: raises DatabaseError for too much time or memory."""
    if not bounded:
        return connection.execute(statement, values).fetchall()
    deadline = time.monotonic() + READING_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    rows: list[tuple[Any, ...]] = []
    size = 0
    try:
        cursor = connection.execute(statement, values)
        while some := cursor.fetchmany(_ROWS_AT_ONCE):
            rows += some
            size += sum(
                ROW_BYTES + sum(len(cell) for cell in row if isinstance(cell, str | bytes))
                for row in some
            )
            if size > MOST_READ_BYTES:
                reason = f"it holds more than {MOST_READ_BYTES} bytes of one kind"
                raise sqlite3.DatabaseError(reason)
    finally:
        connection.set_progress_handler(None, 0)
    return rows


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
