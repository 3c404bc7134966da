"""Shared parts of the Docker wall's tests: a wall on the engine here, and containers in which
another program than the worker runs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.sandbox.docker.container import Surroundings
from eureka_agent.sandbox.docker.engine import Engine, connect
from eureka_agent.sandbox.docker.wall import DockerHandle, DockerWall
from eureka_agent.sandbox.wall import Limits


class ScriptWall(DockerWall):
    """The wall as it is, around a script."""

    script = ""

    def _options(self, name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
        return super()._options(name, limits, surroundings) | {"command": ["-c", self.script]}


class Lines:
    """Reads a worker's output by line."""

    def __init__(self, handle: DockerHandle) -> None:
        self._handle = handle
        self._buffer = bytearray()

    async def next(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            data = await self._handle.read(1 << 16)
            assert data, self._handle.last_words()
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    found = connect()
    yield found
    found.close()


@pytest.fixture
def wall(engine: Engine) -> DockerWall:
    return DockerWall(engine)


@pytest.fixture
def run_script(
    engine: Engine, tmp_path: Path
) -> Callable[..., Awaitable[tuple[DockerHandle, ScriptWall]]]:
    """Starts a script behind the wall."""

    async def run(script: str, limits: Limits | None = None) -> tuple[DockerHandle, ScriptWall]:
        wall = ScriptWall(engine)
        wall.script = script
        folder = tmp_path / "own"
        folder.mkdir(exist_ok=True)
        handle = await wall.start(folder, limits or Limits(memory_bytes=512 << 20))
        assert isinstance(handle, DockerHandle)
        return handle, wall

    return run


@pytest.fixture
def lines() -> type[Lines]:
    return Lines


async def _all_output(handle: DockerHandle) -> bytes:
    pieces = []
    while data := await handle.read(1 << 20):
        pieces.append(data)
    return b"".join(pieces)


@pytest.fixture
def all_output() -> Callable[[DockerHandle], Awaitable[bytes]]:
    return _all_output
