"""The wall that `--sandbox` selects: a name gives that wall or an error, `auto` says what it took
and why."""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from eureka_agent.errors import WallError
from eureka_agent.sandbox.bubblewrap_wall import unavailable_reason
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.process_wall import ProcessWall


@pytest.fixture(autouse=True)
def _nothing_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who was told of no wall yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which no engine answers and no bwrap is installed."""
    monkeypatch.delenv("EUREKA_SANDBOX", raising=False)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_auto_takes_the_last_one_and_says_why_and_what_it_does_not_cover(
    nothing_there: Path,
) -> None:
    said: list[str] = []
    assert choose_wall("auto", said.append).name == "process"
    (line,) = said
    assert line.startswith(
        f"sandbox: process, which does not cover {'; '.join(ProcessWall().does_not_cover)} (not"
        " docker: "
    )
    assert (
        "(not docker: no Docker engine runs here: there is no socket '/nowhere/docker.sock'" in line
    )
    assert "; not bubblewrap: " in line
    assert "\n" not in line


def test_the_same_is_said_once_a_day_and_again_when_it_changes(
    nothing_there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    for _ in range(3):
        choose_wall("auto", said.append)
    assert len(said) == 1
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere/docker.sock")  # another reason
    choose_wall("auto", said.append)
    assert len(said) == 2
    marker = nothing_there / "state" / "eureka_agent" / "wall-note"
    day, _, rest = marker.read_text().partition(" ")
    marker.write_text(f"{date.fromisoformat(day) - timedelta(days=1)} {rest}")
    choose_wall("auto", said.append)
    assert said[2:] == said[1:2]


@pytest.mark.skipif(unavailable_reason() is not None, reason="bubblewrap does not work here")
def test_auto_takes_bubblewrap_where_no_engine_answers(
    nothing_there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    said: list[str] = []
    assert choose_wall("auto", said.append).name == "bubblewrap"
    assert "not docker: " in said[0]


@pytest.mark.docker
def test_auto_takes_docker_where_an_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EUREKA_SANDBOX", raising=False)
    said: list[str] = []
    assert choose_wall("auto", said.append).name == "docker"
    assert said[-1].startswith("sandbox: docker, which does not cover ")


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("docker", "no Docker engine runs here", "install or start Docker"),
        ("bubblewrap", "the sandbox 'bubblewrap' cannot be had here", "another --sandbox"),
        ("dokcer", "there is no sandbox 'dokcer'", "did you mean 'docker'"),
    ],
)
def test_a_wall_that_is_asked_for_and_not_there_is_an_error(
    nothing_there: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str, hint: str
) -> None:
    """It may be asked for by name, or by the variable that says what `auto` is."""
    with pytest.raises(WallError) as caught:
        choose_wall(name)
    assert message in caught.value.message
    assert hint in caught.value.hint
    monkeypatch.setenv("EUREKA_SANDBOX", name)
    with pytest.raises(WallError, match=message):
        choose_wall("auto")
