"""Another program that reads or writes a run's archive for a while: the run waits for it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from stored_attempts import store_attempt

from eureka_agent.archive import database, sqlite_files
from eureka_agent.archive.database import UNSTORED, Archive
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import Notice, RunCreated
from eureka_agent.records import Attempt, Cost, Message

REPLY = Message(
    role="designer", model="openai/tiny", request="q", reply="paid", cost=Cost(money="1")
)
READS = ("BEGIN", "SELECT * FROM journal")
WRITES = ("BEGIN IMMEDIATE",)
WRITES_ALONE = ("BEGIN EXCLUSIVE",)


@pytest.fixture(autouse=True)
def short_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.02)
    monkeypatch.setattr(sqlite_files, "OPENING_SECONDS", 0.02)


@contextmanager
def held(folder: Path, statements: tuple[str, ...]) -> Iterator[Callable[[], None]]:
    """Hold the archive as another program does, until the given function is called."""
    with closing(
        sqlite3.connect(folder / "archive.sqlite", isolation_level=None, check_same_thread=False)
    ) as other:
        for statement in statements:
            other.execute(statement).fetchone()
        yield lambda: other.execute("ROLLBACK") and None


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    archive = Archive(tmp_path)
    archive.append(RunCreated())
    yield archive
    archive.close()


def let_go_when_told(archive: Archive, let_go: Callable[[], None], tries: int = 3) -> list[str]:
    """Let the other program go on some tries after the archive has told that it waits."""
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        threading.Timer(tries * 0.03, let_go).start()

    archive.tell = tell
    return told


@pytest.mark.parametrize("statements", [READS, WRITES, WRITES_ALONE])
@pytest.mark.parametrize(
    "work",
    [
        lambda archive: (
            archive.append(Notice(text="on we go", level="warning")) and archive.flush()
        ),
        lambda archive: archive.put("key", REPLY),
        lambda archive: archive.set_signature("id", "signature"),
        lambda archive: archive.seal_all(lambda text: "seal"),
    ],
    ids=["an entry", "a reply", "a signature", "seals"],
)
def test_a_run_waits_for_another_program_and_says_so_once(
    archive: Archive, work: Callable[[Archive], object], statements: tuple[str, ...]
) -> None:
    with held(archive.folder, statements) as let_go:
        told = let_go_when_told(archive, let_go)
        work(archive)
    assert len(told) == 1
    assert "another program holds" in told[0]
    assert not list((archive.folder / UNSTORED).glob("*"))
    archive.close()
    again = Archive(archive.folder, reading=True)
    stored = [entry.entry.kind for entry in again.entries()], again.find("key"), again.signature
    assert stored in [
        (["run-created", "notice"], None, None),
        (["run-created"], REPLY, None),
        (["run-created"], None, ("id", "signature")),
        (["run-created"], None, None),
    ]


def test_the_state_is_read_when_a_writer_lets_go(
    archive: Archive, make_attempt: Callable[..., Attempt]
) -> None:
    store_attempt(archive, make_attempt(0, 0))
    with held(archive.folder, WRITES_ALONE) as let_go:
        told = let_go_when_told(archive, let_go)
        assert [attempt.id for attempt in archive.attempts()] == ["1-01"]
    assert len(told) == 1


def test_a_reply_outlives_a_process_that_ends_while_it_waits(archive: Archive) -> None:
    """As Ctrl-C ends it: the reply is paid, and the next process stores it."""

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    with held(archive.folder, READS) as let_go:
        archive.tell = stop
        with pytest.raises(KeyboardInterrupt):
            archive.put("key", REPLY)
        with pytest.raises(RunFolderError, match="another program holds it"):  # it waits no more
            archive.set_signature("id", "signature")
        archive.close()
        let_go()
    assert len(list((archive.folder / UNSTORED).iterdir())) == 1
    with closing(Archive(archive.folder)) as again:
        assert again.find("key") == REPLY
    assert not list((archive.folder / UNSTORED).iterdir())


@pytest.mark.parametrize("reading", [True, False])
def test_an_archive_that_another_program_holds_is_not_called_damaged(
    archive: Archive, reading: bool
) -> None:
    with held(archive.folder, WRITES_ALONE), pytest.raises(RunFolderError) as caught:
        Archive(archive.folder, reading=reading)
    assert "another program holds it" in caught.value.message
    assert "damaged" not in caught.value.message
    assert "copy of it back" not in caught.value.hint
    open_already = Archive(archive.folder, reading=True)
    with held(archive.folder, WRITES_ALONE), pytest.raises(RunFolderError) as caught:
        open_already.attempts()
    assert "damaged" not in caught.value.message
    assert "close that program" in caught.value.hint


def test_closing_does_not_wait_for_ever(archive: Archive) -> None:
    archive.append(Notice(text="not durable"))
    with held(archive.folder, READS):
        archive.close()


@pytest.mark.parametrize("content", [b"", b"[]", b'["key"]', b'["key", "{}"]', b"[" * 100_000])
def test_a_reply_beside_the_archive_that_is_none_is_one_clear_error(
    archive: Archive, content: bytes
) -> None:
    archive.close()
    (archive.folder / UNSTORED).mkdir()
    (archive.folder / UNSTORED / "a.json").write_bytes(content)
    with pytest.raises(RunFolderError, match="the reply"):
        Archive(archive.folder)
