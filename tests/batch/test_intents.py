"""Intents of a batch: states follow from them and from run folders; strangers' files are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.archive import files
from eureka_agent.batch import folder as batch_folder
from eureka_agent.batch.folder import has_begun, plan_searches, searches_of
from eureka_agent.batch.intents import BatchEvent, IntentsFile
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.errors import DiskFullError, RunFolderError


def planned(*names: str, **settings: Any) -> list[PlannedSearch]:
    return [PlannedSearch(name, {"env": "ant", **settings}, {}) for name in names]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_searches(IntentsFile(tmp_path, make=True), planned("one", "two"))
    return tmp_path


def states(intents: IntentsFile, *, running: bool = False) -> dict[str, str]:
    return {each.name: each.state.value for each in searches_of(intents, running)}


def edited(folder: Path, **changes: Any) -> None:
    """Change the file of a batch behind the program's back."""
    content = json.loads((folder / "batch.json").read_text())
    for place, value in changes.items():
        *outer, last = place.split("__")
        part = content
        for key in outer:
            part = part[int(key) if isinstance(part, list) else key]
        part[last] = value
    (folder / "batch.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "works", "at_rest"),
    [
        ({}, "waiting", "waiting"),
        ({"under_way": True}, "running", "waiting"),
        ({"under_way": True, "paused": True}, "paused", "waiting"),
        ({"under_way": True, "cancelled": True}, "cancelling", "cancelled"),
        ({"cancelled": True}, "cancelled", "cancelled"),
        ({"failed": True}, "failed", "failed"),
        ({"in_file": False}, "cancelled", "cancelled"),
    ],
)
def test_a_state_follows_from_what_was_asked(
    folder: Path, changes: dict[str, bool], works: str, at_rest: str
) -> None:
    IntentsFile(folder).record("test", search="one", **changes)
    read = IntentsFile(folder)
    assert states(read, running=True) == {"one": works, "two": "waiting"}
    assert states(read) == {"one": at_rest, "two": "waiting"}


@pytest.mark.parametrize(
    ("finished", "changes", "state"),
    [
        (True, {}, "finished"),
        (True, {"cancelled": True}, "finished"),
        (True, {"in_file": False}, "finished"),
        (False, {}, "stopped"),
        (False, {"message": "no money is left"}, "waiting"),
        (False, {"failed": True}, "failed"),
    ],
)
def test_a_state_follows_from_the_run_folder(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    finished: bool,
    changes: dict[str, Any],
    state: str,
) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "archive.sqlite").touch()
    monkeypatch.setattr(batch_folder, "has_finished", lambda run: finished and run.name == "one")
    intents = IntentsFile(folder)
    intents.record("test", search="one", **changes)
    assert states(intents)["one"] == state


def test_a_run_that_cannot_be_read_has_not_finished(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "archive.sqlite").write_text("no database")
    assert states(IntentsFile(folder))["one"] == "stopped"


def test_what_several_processes_record_is_kept_and_each_is_told_of_the_others(folder: Path) -> None:
    driver, person = IntentsFile(folder), IntentsFile(folder)
    told: list[tuple[str, str | None]] = []
    driver.observer = lambda event: told.append((event.kind, event.search))
    driver.record("running", search="one", under_way=True)
    person.record("cancel", search="two", cancelled=True)
    assert person.now.unheard
    driver.record("retried", "no engine", "one", under_way=False, tries=1, message="no engine")
    driver.record("", unheard=False, trainings=3)
    person.read()
    for each in (driver, person, IntentsFile(folder)):
        assert each.now.searches["one"].tries == 1
        assert each.now.searches["two"].cancelled
        assert not each.now.unheard
        assert each.now.trainings == 3
    assert told == [("running", "one"), ("cancel", "two"), ("retried", "one")]
    assert [event.kind for event in person.now.events] == [
        "planned",
        "running",
        "cancel",
        "retried",
    ]


def test_only_its_owner_can_change_the_file_and_it_stays_short(folder: Path) -> None:
    intents = IntentsFile(folder)
    for number in range(120):
        intents.record("warning", f"{number}" * 100_000, "one")
    assert (folder / "batch.json").stat().st_mode & 0o777 == 0o600
    read = IntentsFile(folder)
    assert [event.number for event in read.now.events] == list(range(22, 122))  # one for the plan
    assert (folder / "batch.json").stat().st_size < 2_000_000


def test_a_full_disk_leaves_the_file_whole_and_the_event_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intents = IntentsFile(folder)
    told: list[BatchEvent] = []
    intents.observer = told.append

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device", str(folder))

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "replace", full)
        with pytest.raises(DiskFullError):
            intents.record("finished", search="one", under_way=False, message="done")
    assert [event.kind for event in told] == ["finished"]
    assert IntentsFile(folder).now.searches["one"].message == ""
    intents.record("heard")
    assert IntentsFile(folder).now.searches["one"].message == "done"


def test_a_new_plan_leaves_out_what_it_does_not_have_and_keeps_what_was_cancelled(
    folder: Path,
) -> None:
    intents = IntentsFile(folder)
    intents.record("cancel", search="two", cancelled=True)
    plan_searches(intents, planned("two", "three"))
    assert list(intents.now.searches) == ["two", "three", "one"]
    assert states(intents) == {"two": "cancelled", "three": "waiting", "one": "cancelled"}
    before = (folder / "batch.json").read_bytes()
    plan_searches(intents, planned("two", "three"))
    assert (folder / "batch.json").read_bytes() == before
    plan_searches(intents, planned("one", "two"))
    assert states(intents)["one"] == "waiting"


def test_a_batch_of_another_version_is_refused_with_the_next_step(folder: Path) -> None:
    edited(folder, form=99, version="0.9.1", future=True)
    with pytest.raises(RunFolderError, match=r"form 99 of version 0\.9\.1, and version .* form 1"):
        IntentsFile(folder)


def test_what_a_killed_process_left_of_a_run_is_removed_and_nothing_else(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "settings.yaml").touch()
    (folder / "other").mkdir()
    assert not has_begun(folder / "one")
    assert not (folder / "one").exists()
    assert (folder / "other").is_dir()


@pytest.mark.parametrize("name", ["../one", "/etc", "a/b", ".", "..", "", "\x1b[31m", "a\n"])
def test_a_search_whose_name_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    edited(folder, searches={name: {"settings": {}}})
    with pytest.raises(RunFolderError, match="cannot be read as a batch"):
        IntentsFile(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"searches__one__settings": []},
        {"searches__one__tries": "many"},
        {"searches__one__tries": -1},
        {"searches__one__more": 1},
        {"searches": []},
        {"events__0__time": "noon"},
        {"events__0__time": 1e99},
        {"events__0__number": 2**70},
        {"paused": "perhaps"},
        {"more": 1},
    ],
)
def test_what_a_stranger_wrote_is_one_clear_error(folder: Path, changes: dict[str, Any]) -> None:
    edited(folder, **changes)
    with pytest.raises(RunFolderError) as caught:
        IntentsFile(folder)
    assert str(folder / "batch.json") in caught.value.message
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"x" * (17 << 20)])
def test_what_is_no_batch_is_one_clear_error(folder: Path, content: bytes) -> None:
    (folder / "batch.json").write_bytes(content)
    with pytest.raises(RunFolderError, match="cannot be read as a batch"):
        IntentsFile(folder)


def test_texts_of_a_stranger_have_nothing_that_a_terminal_obeys(folder: Path) -> None:
    edited(folder, searches__one__message="\x1b]0;title\x07done", events__0__text="\x1b[2Jx")
    intents = IntentsFile(folder)
    assert intents.now.searches["one"].message == "done"
    assert intents.now.events[0].text == "x"


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a folder"])
def test_something_else_in_place_of_the_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "batch.json"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link":
        (tmp_path / "other").mkdir()
        IntentsFile(tmp_path / "other", make=True).record("made")
        path.symlink_to(tmp_path / "other" / "batch.json")
    else:
        path.mkdir()
    with pytest.raises(RunFolderError):
        IntentsFile(tmp_path)
