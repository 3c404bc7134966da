"""Sizes of runs and `eureka runs --prune`, through the real command line."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stranger import eureka, make_run

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import RunEnded
from eureka_agent.records import RunStatus, TaskDescription


@pytest.fixture
def run(tmp_path: Path, description: TaskDescription) -> Run:
    """A stopped run with 4 MB of leftovers."""
    run = make_run(tmp_path / "runs", description)
    run.archive.append(RunEnded(status=RunStatus.STOPPED))
    run.archive.close()
    (run.folder / ".workers").mkdir()
    (run.folder / ".workers" / "scratch").write_bytes(bytes(4_000_000))
    return run


def test_the_list_has_the_size_of_each_run(run: Run, tmp_path: Path) -> None:
    size = sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file())
    (listed,) = json.loads(eureka("runs", "--format", "json", cwd=tmp_path).stdout)["runs"]
    assert listed["bytes"] == size
    title, line = eureka("runs", cwd=tmp_path).stdout.splitlines()
    assert title.split()[-1] == "size"
    assert line.endswith(f" {size / 1e6:.1f} MB")  # 4.1 to 4.9: what else there is, is small


def test_runs_of_a_batch_are_listed_by_its_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "nightly").mkdir()
    shutil.move(run.folder, tmp_path / "nightly" / "ant")
    listed = json.loads(eureka("runs", "nightly", "--format", "json", cwd=tmp_path).stdout)
    assert [each["run"] for each in listed["runs"]] == ["ant"]
    told = eureka("runs", "nightly", "--prune", "--yes", cwd=tmp_path)
    assert told.stdout.endswith("removed 4.0 MB\n")
    assert not (tmp_path / "nightly/ant/.workers").exists()


def test_nothing_is_removed_without_a_yes(run: Run, tmp_path: Path) -> None:
    asked = eureka("runs", "--prune", cwd=tmp_path)
    assert asked.returncode == 1
    assert f"{run.name}: leftovers 4.0 MB" in asked.stdout
    assert "there is no terminal to ask whether 4.0 MB may be removed" in asked.stderr
    for answer, left in (("n\n", True), ("y\n", False)):
        own, theirs = pty.openpty()
        os.write(own, answer.encode())  # it waits in the terminal until it is asked for
        process = subprocess.run(
            [sys.executable, "-m", "eureka_agent.cli.main", "runs", "--prune"],
            env={**os.environ, "EUREKA_RUNS": str(tmp_path / "runs")},
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            timeout=60,
        )
        os.close(theirs)
        assert "Remove 4.0 MB? [y/N]" in os.read(own, 65536).decode()
        os.close(own)
        assert (process.returncode, (run.folder / ".workers").exists()) == (int(left), left)


def test_the_events_tell_what_was_removed(run: Run, tmp_path: Path) -> None:
    eureka("runs", "--prune", "--yes", cwd=tmp_path)
    events = eureka("show", "latest", "--events", cwd=tmp_path).stdout
    assert events.splitlines()[-1].endswith("1 file removed to free 4.0 MB")
