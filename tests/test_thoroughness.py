"""A share of the cases for each commit: together they are all of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import thoroughness

CASES = list("abcdefgh")


def commit_of(folder: Path, name: str) -> None:
    """A repository with one commit, or with one more."""
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", name], check=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(thoroughness, "_ROOT", tmp_path)
    monkeypatch.setattr(thoroughness, "_commit", thoroughness._commit.__wrapped__)
    monkeypatch.setattr(thoroughness, "EVERYTHING", False)
    return tmp_path


def test_the_commits_share_all_cases_among_them(folder: Path) -> None:
    shares = set()
    for number in range(60):  # none of three shares comes: once in 3e10 times
        commit_of(folder, f"commit {number}")
        shares.add(tuple(thoroughness.third(CASES)))
        if len(shares) == 3:
            break
    assert shares == {("a", "d", "g"), ("b", "e", "h"), ("c", "f")}
    assert thoroughness.third(CASES) == thoroughness.third(CASES)


def test_all_of_them_where_there_is_no_git_and_where_all_are_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert thoroughness.third(CASES) == CASES
    commit_of(folder, "first")
    assert len(thoroughness.third(CASES)) in (2, 3)
    monkeypatch.setattr(thoroughness, "EVERYTHING", True)
    assert thoroughness.third(CASES) == CASES
