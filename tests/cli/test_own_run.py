"""The user is asked nothing about a run of their own, from the search to the export. A run that
could not be signed says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from stranger import eureka, is_own

pytestmark = pytest.mark.slow
SMALL = (
    "--iterations",
    "1",
    "--samples",
    "2",
    "--finalists",
    "1",
    "--final-seeds",
    "1",
    "--env-steps",
    "2048",
)
SEARCH = ("search", "balance the pole", "--env", "cartpole", *SMALL)


@pytest.mark.in_turns(1)
def test_nothing_is_asked_of_the_user_s_own_run(tmp_path: Path) -> None:
    # the wall that the user named, weaker than what the other commands would take by themselves
    result = eureka(*SEARCH, "--sandbox", "process", cwd=tmp_path, timeout=300)
    assert result.returncode == 0, result.stderr
    (folder,) = (path.parent for path in (tmp_path / "runs").glob("*/archive.sqlite"))
    moved = tmp_path / "elsewhere" / "a run"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    for command in ("evaluate", "resume", "export", "show"):
        result = eureka(command, str(moved), cwd=tmp_path, timeout=300, EUREKA_SANDBOX="docker")
        assert result.returncode == 0, (command, result.stderr)
        assert "your own" not in result.stdout + result.stderr
    assert is_own(moved, attempts=True)
    described = moved / "environment.json"
    described.write_text(
        described.read_text().replace('"fitness_doc": "', '"fitness_doc": "\\u001b[2J\\u009b31m')
    )
    result = eureka("evaluate", str(moved), "--trust", cwd=tmp_path, timeout=300)
    assert (result.returncode, "\x1b" in result.stdout, "\x9b" in result.stdout) == (
        0,
        False,
        False,
    )
    assert "over 64 episodes" in result.stdout
