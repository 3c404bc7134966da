from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import make_outcome
from stored_attempts import store_attempt

from eureka_agent.archive.database import Archive
from eureka_agent.archive.sqlite_files import VERSION
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import AttemptEnded, FinalTrained, Notice, RunCreated, RunEnded
from eureka_agent.records import Attempt, Cost, FinalTraining, Message, RunStatus, Stage


def test_an_attempt_comes_back_as_it_was_put(
    tmp_path: Path, make_attempt: Callable[..., Attempt]
) -> None:
    attempt = make_attempt(0, 2, fitness=3.5, retries=1)
    store_attempt(Archive(tmp_path), attempt)
    found = Archive(tmp_path).attempt("1-03")
    assert found is not None
    assert found.model_copy(update={"created": attempt.created}) == attempt


def test_attempts_are_ordered_by_iteration_sample_and_revision(
    tmp_path: Path, make_attempt: Callable[..., Attempt]
) -> None:
    archive = Archive(tmp_path)
    for attempt in (
        make_attempt(1, 0, 1.0),
        make_attempt(0, 10, 1.0),
        make_attempt(0, 9, revision=1),
        make_attempt(0, 9),
    ):
        store_attempt(archive, attempt)
    assert [attempt.id for attempt in archive.attempts()] == ["1-10", "1-10-r1", "1-11", "2-01"]
    assert [attempt.id for attempt in archive.attempts(iteration=0)] == ["1-10", "1-10-r1", "1-11"]
    assert archive.attempts(iteration=2) == ()


def test_the_table_can_be_read_with_plain_sql(
    tmp_path: Path, make_attempt: Callable[..., Attempt]
) -> None:
    store_attempt(Archive(tmp_path), make_attempt(0, 0, fitness=2.0))
    rows = (
        sqlite3.connect(tmp_path / "archive.sqlite")
        .execute("SELECT id, stage, fitness FROM attempts")
        .fetchall()
    )
    assert rows == [("1-01", "trained", 2.0)]


def test_trainings_and_messages_come_back(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    training = FinalTraining(
        name="human", seed=5, outcome=None, failure="the reward raised", retries=1
    )
    message = Message(
        role="designer", model="m", request="q", reply="a", cost=Cost(prompt_tokens=3)
    )
    archive.append(FinalTrained(training=training))
    archive.put("key", message)
    assert archive.trainings() == (training,)
    assert archive.find("key") == message
    assert archive.find("another key") is None


def test_the_journal_comes_back_in_order_with_its_time(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.clock = lambda: 12.5
    archive.append(RunCreated(command=("eureka",)))
    archive.append(Notice(text="passes"))  # stored with the next one that is durable
    assert [each.number for each in Archive(tmp_path).entries()] == [1]
    archive.append(RunEnded(status=RunStatus.STOPPED, message="stopped"))
    stored = list(Archive(tmp_path).entries())
    assert [(each.number, each.seconds, type(each.entry)) for each in stored] == [
        (1, 12.5, RunCreated),
        (2, 12.5, Notice),
        (3, 12.5, RunEnded),
    ]
    assert [each.number for each in Archive(tmp_path).entries(after=2)] == [3]


def test_what_was_known_at_an_entry_is_known_later(
    tmp_path: Path, make_attempt: Callable[..., Attempt]
) -> None:
    archive = Archive(tmp_path)
    first = store_attempt(archive, make_attempt(0, 0, stage=Stage.ACCEPTED))
    outcome = make_outcome(3.0)
    archive.append(AttemptEnded(attempt="1-01", stage=Stage.TRAINED, outcome=outcome))
    then, later = archive.state_at(first.number), Archive(tmp_path).state_at(None)
    assert then.by_id["1-01"].stage is Stage.ACCEPTED
    assert (later.by_id["1-01"].stage, later.by_id["1-01"].fitness) == (Stage.TRAINED, 3.0)


def test_entries_of_a_later_version_are_refused_in_one_line(tmp_path: Path) -> None:
    Archive(tmp_path).append(RunCreated())
    with sqlite3.connect(tmp_path / "archive.sqlite") as connection:
        connection.execute("UPDATE journal SET version = 2")
    with pytest.raises(RunFolderError, match="'run-created', version 2, which this version"):
        Archive(tmp_path, reading=True).attempts()


def test_tables_of_another_version_are_not_read(tmp_path: Path) -> None:
    Archive(tmp_path).close()
    with sqlite3.connect(tmp_path / "archive.sqlite") as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    for reading in (True, False):
        with pytest.raises(
            RunFolderError,
            match=f"of version {VERSION + 1}, and this program reads version {VERSION}",
        ):
            Archive(tmp_path, reading=reading)


def test_an_account_has_all_but_what_was_said(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    message = Message(
        role="designer",
        attempt="1-01",
        model="a/b",
        request="long\n'\"",
        reply="…",
        cost=Cost(prompt_tokens=7),
    )
    archive.put("x", message)
    archive.put("y", message.model_copy(update={"attempt": "1-02", "cost": Cost()}))
    expected = [(each.attempt, "a/b", "", "", each.cost) for each in archive.messages()]
    assert [
        (each.attempt, each.model, each.request, each.reply, each.cost)
        for each in archive.account()
    ] == expected
    assert [each.cost.prompt_tokens for each in archive.account()] == [7, None]


def test_of_entries_that_find_no_room_none_is_stored_and_none_is_lost(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.append(RunCreated())
    (pages,) = archive._connection.execute("PRAGMA page_count").fetchone()
    archive._connection.execute(f"PRAGMA max_page_count = {pages}")
    archive.append(Notice(text="first"))
    with pytest.raises(RunFolderError, match="the disk is full"):
        archive.append(RunEnded(status=RunStatus.FAILED, message="x" * 100_000))
    assert [each.number for each in Archive(tmp_path).entries()] == [1]
    archive._connection.execute("PRAGMA max_page_count = 10000")
    archive.flush()
    assert [each.number for each in Archive(tmp_path).entries()] == [1, 2, 3]
