from __future__ import annotations

import errno
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import locked, write_file, write_text
from eureka_agent.archive.run_folder import create_run, find_run, open_run
from eureka_agent.errors import RunFolderError
from eureka_agent.records import RunStatus, TaskDescription
from eureka_agent.search.resumption import record_changes, with_changes
from eureka_agent.settings import SearchSettings


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_a_run_opens_with_the_settings_and_the_task_that_it_was_made_with(
    runs: Path, description: TaskDescription
) -> None:
    settings = SearchSettings(env="cart", iterations=5, hidden_sizes=(32, 16))
    made = create_run(settings, description, ["eureka", "search"])
    opened = open_run(made.folder)
    assert opened.settings == settings
    assert opened.description == description
    assert opened.sentence == "keep the cart at the centre"
    assert opened.archive.state.began.command == ("eureka", "search")


@pytest.mark.parametrize("missing", ["settings.yaml", "environment.json", "archive.sqlite"])
def test_a_folder_without_a_part_is_not_a_run(
    runs: Path, description: TaskDescription, missing: str
) -> None:
    folder = create_run(SearchSettings(), description, []).folder
    (folder / missing).unlink()
    with pytest.raises(RunFolderError, match=f"is not a run: it has no {missing}"):
        open_run(folder)


def test_a_run_whose_process_is_killed_at_any_write_is_this_user_s_or_none(
    tmp_path: Path, description: TaskDescription
) -> None:
    """Otherwise a batch would wait for a person to say that its own run may go on."""

    def make(folder: Path) -> None:
        create_run(SearchSettings(env="cart"), description, [], folder=folder)

    folders = [tmp_path / str(number) for number in range(20)]
    ends = [killed_at_write(number, make, folder) for number, folder in enumerate(folders)]
    assert True in ends[3:], ends  # it came to its end in more than three writes
    for folder, ended in zip(folders, ends, strict=True):
        assert (folder / "archive.sqlite").exists() or not ended
        if (folder / "archive.sqlite").exists():
            assert open_run(folder).is_own(attempts=True), folder


def test_a_run_whose_settings_were_being_changed_stays_this_user_s(
    tmp_path: Path, description: TaskDescription
) -> None:
    made = create_run(SearchSettings(env="cart"), description, [], parent=tmp_path).folder

    def change(folder: Path) -> None:
        run = open_run(folder)
        run.settings = with_changes(run, {"base_url": "http://127.0.0.1:9/v1"})
        record_changes(run)
        run.sign()

    folders = [tmp_path / str(number) for number in range(10)]
    ends = []
    for number, folder in enumerate(folders):
        shutil.copytree(made, folder)
        ends.append(killed_at_write(number, change, folder))
        assert open_run(folder).is_own(), folder
    assert True in ends[3:], ends
    settings = [open_run(folder).settings.base_url for folder in folders]
    assert {None, "http://127.0.0.1:9/v1"} == set(settings)


def killed_at_write(number: int, action: Callable[[Path], object], folder: Path) -> bool:
    """True where an action came to its end in a process that dies before this write of its
    archive."""
    child = os.fork()
    if child == 0:
        left = iter(range(number))
        write = Archive._write

        def dying(archive: Archive, *statements: Any) -> None:
            if next(left, None) is None:
                os._exit(9)
            write(archive, *statements)

        Archive._write = dying  # type: ignore[method-assign]
        try:
            action(folder)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 0


def test_runs_are_found_by_path_name_beginning_and_latest(runs: Path) -> None:
    for name in ("20260101-000000_ant_run", "20260102-000000_hopper_run"):
        (runs / name).mkdir(parents=True)
        (runs / name / "archive.sqlite").touch()
    assert find_run(str(runs / "20260101-000000_ant_run")).name == "20260101-000000_ant_run"
    assert find_run("20260102-000000_hopper_run").name == "20260102-000000_hopper_run"
    assert find_run("20260101").name == "20260101-000000_ant_run"
    assert find_run("latest").name == "20260102-000000_hopper_run"
    with pytest.raises(RunFolderError, match="beginning of 2 runs"):
        find_run("2026")
    with pytest.raises(RunFolderError, match="no run 'nothing'"):
        find_run("nothing")


def test_a_run_that_another_process_holds_cannot_be_entered(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from eureka_agent.archive.files import locked\n"
            "with locked(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()",
            str(tmp_path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(RunFolderError, match=f"is being worked on by process {holder.pid}"),
            locked(tmp_path),
        ):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path):  # the kill let go of it
        assert (tmp_path / ".lock").exists()


def test_a_write_that_fails_leaves_the_old_file_and_says_how_to_go_on(tmp_path: Path) -> None:
    def fill_the_disk(draft: Path) -> None:
        draft.write_text("half of the n")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "archive.sqlite").touch()
    report = tmp_path / "attempts" / "1-01" / "report.md"
    write_text(report, "old")
    with pytest.raises(RunFolderError, match="the disk is full") as caught:
        write_file(report, fill_the_disk)
    assert (
        caught.value.hint == f"free some space, then `eureka resume {shlex.quote(str(tmp_path))}`"
    )
    assert report.read_text() == "old"
    assert list(report.parent.iterdir()) == [report]


def test_a_run_that_says_running_and_that_nobody_works_on_has_stopped(
    runs: Path, description: TaskDescription
) -> None:
    run = create_run(SearchSettings(), description, [])
    assert run.status is RunStatus.STOPPED
    with locked(run.folder):
        assert run.status is RunStatus.RUNNING


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('"environment":', '"enviroment":', "'environment' is missing"),
        ('"control_dt": 0.02', '"control_dt": "slow"', "'control_dt' is 'slow', expected a number"),
        ('"private": false', '"private": 7', "'variables.0.private' is 7, expected true or false"),
        ("{", "[", "it is not JSON"),
    ],
)
def test_an_edited_environment_is_told_in_words(
    tmp_path: Path, description: TaskDescription, before: str, after: str, reason: str
) -> None:
    folder = create_run(SearchSettings(), description, [], parent=tmp_path).folder
    path = folder / "environment.json"
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(RunFolderError) as caught:
        open_run(folder, reading=True)
    assert caught.value.message == f"{str(path)!r} does not describe an environment: {reason}"


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(RunFolderError) as caught:
        write_text(tmp_path / "docs", "text")
    assert (
        caught.value.message
        == f"cannot write {str(tmp_path / 'docs')!r}: it is a folder, expected a file"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


@pytest.mark.parametrize(
    "content", [None, b"", b"SQLite format 3\0" + bytes(50), b"no database" * 50]
)
def test_a_lost_archive_says_what_is_left_of_the_run(
    tmp_path: Path,
    description: TaskDescription,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
) -> None:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path))
    run = create_run(SearchSettings(), description, [])
    run.archive.close()
    (run.folder / "report.md").write_text("# A report\n")
    (run.folder / "report.html").write_text("<!doctype html>\n")
    (run.folder / "best").mkdir()
    (run.folder / "archive.sqlite").unlink()
    if content is not None:
        (run.folder / "archive.sqlite").write_bytes(content)
    with pytest.raises(RunFolderError) as caught:
        open_run(find_run(run.name), reading=True)
    assert "archive.sqlite" in caught.value.message
    assert caught.value.hint == (
        "put a copy of it back if you have one: nothing else restores the run; "
        f"what can still be read: {run.folder / 'report.md'}, {run.folder / 'report.html'},"
        f" {run.folder / 'best'}"
    )


def test_no_folder_stays_of_a_run_that_could_not_be_made(
    tmp_path: Path, description: TaskDescription
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (100, limit[1])
    )  # a write beyond it fails, as on a full disk
    try:
        with pytest.raises(RunFolderError) as caught:
            create_run(SearchSettings(), description, [], parent=tmp_path / "runs")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.message.startswith(f"cannot make a run in {str(tmp_path / 'runs')!r}: ")
    assert list((tmp_path / "runs").iterdir()) == []
