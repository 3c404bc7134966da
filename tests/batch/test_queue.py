"""The queue of a batch: other versions and other people's files are refused."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from eureka_agent.batch.folder import has_begun
from eureka_agent.batch.queue import Queue, State
from eureka_agent.batch.session import _remove_socket
from eureka_agent.errors import RunFolderError

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def edited(folder: Path, statement: str, *values: object) -> None:
    """Edit the queue in a folder behind the program's back."""
    with closing(sqlite3.connect(folder / "batch.sqlite")) as connection, connection:
        connection.execute(statement, values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(Queue(tmp_path, make=True)) as queue:
        queue.add([("one", {"env": "ant"})])
    return tmp_path


@pytest.mark.parametrize("name", ["../one", "/etc", "a/b", ".", "..", "", "\x1b[31m", "a\n"])
def test_a_search_whose_name_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    edited(folder, "UPDATE searches SET name = ?", name)
    refused = pytest.raises(RunFolderError, match="no batch of this program has")
    with closing(Queue(folder, reading=True)) as queue, refused:
        queue.entries()


def test_a_batch_of_another_version_is_refused_with_the_next_step(folder: Path) -> None:
    edited(folder, "UPDATE about SET value = '99' WHERE name = 'schema'")
    with pytest.raises(RunFolderError, match="has the form 99, expected 1") as caught:
        Queue(folder)
    assert "another --folder" in caught.value.hint


def test_what_a_killed_process_left_of_a_run_is_removed_and_nothing_else(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "settings.yaml").touch()
    (folder / "other").mkdir()
    with closing(Queue(folder)) as queue:
        (entry,) = queue.entries()
        assert entry.state is State.WAITING
        assert not has_begun(folder, entry)
    assert not (folder / "one").exists()
    assert (folder / "other").is_dir()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE searches SET state = 'nonsense'",
        "UPDATE searches SET state = x'00ff'",
        "UPDATE searches SET settings = '[]'",
        "UPDATE searches SET settings = '{'",
        f"UPDATE searches SET settings = '{'[' * 100_000}'",
        "UPDATE searches SET tries = 'many'",
        "UPDATE searches SET tries = -1",
        "UPDATE searches SET message = x'ff'",
        "UPDATE searches SET name = x'2e2e'",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM searches; END",
        "CREATE INDEX i ON events (text)",
        "ALTER TABLE searches ADD COLUMN x GENERATED ALWAYS AS (zeroblob(1 << 29))",
        "DROP TABLE events",
        f"DROP TABLE searches; CREATE VIEW searches AS {ENDLESS}",
        f"DROP TABLE about; CREATE VIEW about AS {ENDLESS}",
        "DROP TABLE about; CREATE VIRTUAL TABLE about USING fts5(name, value)",
        "UPDATE about SET value = x'ff' WHERE name = 'schema'",
    ],
)  # fmt: skip
@pytest.mark.parametrize("reading", [True, False])
def test_what_a_stranger_wrote_into_a_queue_is_one_clear_error(
    folder: Path, statement: str, reading: bool
) -> None:
    with closing(sqlite3.connect(folder / "batch.sqlite")) as connection, connection:
        connection.executescript(statement)

    def read() -> None:
        with closing(Queue(folder, reading=reading)) as queue:
            queue.entries()

    with pytest.raises(RunFolderError) as caught:
        read()
    assert str(folder / "batch.sqlite") in caught.value.message or "made by version" in (
        caught.value.message
    )
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("time", ["'noon'", "-1", "1e300", "9e999"])
def test_an_event_of_a_stranger_is_one_clear_error(folder: Path, time: str) -> None:
    edited(folder, f"INSERT INTO events (time, kind, text) VALUES ({time}, 'x', 'y')")
    with closing(Queue(folder, reading=True)) as queue, pytest.raises(RunFolderError):
        queue.last_events(30)


def test_texts_of_a_stranger_have_nothing_that_a_terminal_obeys(folder: Path) -> None:
    edited(folder, "UPDATE searches SET message = ?", "\x1b]0;title\x07done")
    edited(folder, "INSERT INTO events (time, kind, text) VALUES (1, ?, ?)", "\x1b[2Jx", "\x9b2Jy")
    with closing(Queue(folder, reading=True)) as queue:
        assert [entry.message for entry in queue.entries()] == ["done"]
        assert [(event.kind, event.text) for event in queue.last_events(9)] == [("x", "y")]


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a folder"])
def test_something_else_in_place_of_a_queue_is_not_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "batch.sqlite"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link":
        (tmp_path / "other").mkdir()
        Queue(tmp_path / "other", make=True).close()
        path.symlink_to(tmp_path / "other" / "batch.sqlite")
    else:
        path.mkdir()
    with pytest.raises(RunFolderError):
        Queue(tmp_path, reading=True)


@pytest.mark.parametrize("statement", ["BEGIN; SELECT * FROM events", "BEGIN IMMEDIATE"])
def test_a_batch_waits_for_another_program_and_says_so(
    folder: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eureka_agent.batch.queue.BUSY_SECONDS", 0.02)
    told: list[str] = []
    with (
        closing(Queue(folder)) as queue,
        closing(
            sqlite3.connect(folder / "batch.sqlite", isolation_level=None, check_same_thread=False)
        ) as other,
    ):
        for each in statement.split("; "):
            other.execute(each).fetchone()

        def tell(text: str) -> None:
            told.append(text)
            threading.Timer(0.1, lambda: other.execute("ROLLBACK")).start()

        queue.tell = tell
        queue.set_state("one", State.FAILED, "why")
        assert [entry.state for entry in queue.entries()] == [State.FAILED]
    assert len(told) == 1
    assert "another program holds" in told[0]


def test_a_socket_that_a_queue_names_elsewhere_is_not_removed(tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(tmp_path / "other.sock"))
        _remove_socket(str(tmp_path / "other.sock"))
    assert (tmp_path / "other.sock").is_socket()
