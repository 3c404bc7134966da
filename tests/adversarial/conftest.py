"""Shared parts of the adversarial suite: the walls available here, the traps that a successful
attack would touch, and a check of them after each attack."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hostile_code import DEFENDED_BY_WALLS, Attack

from eureka_agent.sandbox.bubblewrap_wall import unavailable_reason
from eureka_agent.sandbox.choose import open_wall
from eureka_agent.sandbox.wall import Wall

SECRET = "canary-secret-of-the-person"
WALLS = [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap", "process"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every reward attacks the process wall, where only the filter around rewards stands before it.
    The other walls have the same filter, and meet only the attacks that they themselves defend
    against. `make test-all`: every reward attacks every wall."""
    if os.environ.get("EUREKA_TESTS_ALL") == "1":
        return
    left_out = [item for item in items if _meets_the_same_defence(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def _meets_the_same_defence(item: pytest.Item) -> bool:
    values = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    attack, wall = values.get("attack"), values.get("wall")
    return (
        isinstance(attack, Attack)
        and wall in ("docker", "bubblewrap")
        and attack.group not in DEFENDED_BY_WALLS
    )


@pytest.fixture(scope="module", params=WALLS)
def wall(request: pytest.FixtureRequest) -> Wall:
    """Each wall that works here."""
    return _open(request.param)


@pytest.fixture(scope="module", params=WALLS[:2])
def holding(request: pytest.FixtureRequest) -> Wall:
    """Each wall that holds by itself, without the filter around a reward."""
    return _open(request.param)


def _open(name: str) -> Wall:
    """Open a wall. Bubblewrap must work where a Docker engine is required."""
    if name == "bubblewrap" and (reason := unavailable_reason()) is not None:
        if os.environ.get("EUREKA_REQUIRE_DOCKER") == "1":
            pytest.fail(f"bubblewrap is required here: {reason}")
        pytest.skip(f"no bubblewrap: {reason}")
    return open_wall(name)


@dataclass(frozen=True)
class Traps:
    """The things that an attack would touch."""

    canary: Path
    listener: socket.socket

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def check(self) -> None:
        """Check that nothing was touched: no file, and no connection was made."""
        assert self.canary.read_text() == SECRET
        assert [path.name for path in self.canary.parent.iterdir()] == [self.canary.name]
        for folder in ("/tmp", "/dev/shm"):
            assert not Path(folder, "left-behind").exists()
        with pytest.raises(BlockingIOError):
            self.listener.accept()


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traps]:
    """A file with a secret, a variable with one, and a listener on this machine."""
    canary = tmp_path_factory.mktemp("home") / "canary.txt"
    canary.write_text(SECRET)
    with socket.socket() as listener, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTILE_API_KEY", SECRET)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        yield Traps(canary, listener)
