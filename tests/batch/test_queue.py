"""The queue of a batch: other versions and other people's files are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from eureka_agent.batch.folder import has_begun
from eureka_agent.batch.queue import Queue, State
from eureka_agent.errors import RunFolderError


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
