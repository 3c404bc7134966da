"""The actor of one worker on a node of a Ray cluster: it starts the worker behind that node's wall
and passes its two streams on. This module does not need Ray itself."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from eureka_agent import __version__
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.errors import EurekaError, WallError
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.wall import VISIBLE_GPUS, Limits, Wall, WorkerHandle, shared_limits


@dataclass(frozen=True)
class Started:
    """A started worker, or why there is none."""

    node: str
    places: Mapping[str, str]
    """Paths of the user's folders on the node, by those on the driver's machine."""
    error: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Ended:
    returncode: int
    last_words: str


class Host:
    """Runs one worker. All calls come from one driver, in order."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._wall: Wall | None = None
        self._handle: WorkerHandle | None = None

    async def start(
        self, version: str, wall: str, limits: Limits, folders: Mapping[str, bytes]
    ) -> Started:
        """Start the worker behind the node's wall of this name. `folders`: packed ones of the user
        that it reads, by their paths on the driver's machine."""
        node = socket.gethostname()
        if version != __version__:
            what = f"the node {node!r} has version {__version__} of this program, the driver has"
            return Started(node, {}, f"{what} {version}", "install the same version on all nodes")
        try:
            places = await self._start(wall, limits, folders)
        except EurekaError as error:
            return Started(node, {}, f"on the node {node!r}: {error.message}", error.hint or "")
        return Started(node, {name: str(place) for name, place in places.items()})

    async def _start(
        self, wall: str, limits: Limits, folders: Mapping[str, bytes]
    ) -> dict[str, Path]:
        scratch = self._stack.enter_context(driver_scratch())
        # folders that lie side by side find each other there too
        parents = list(dict.fromkeys(Path(name).parent for name in folders))
        places = {
            name: scratch / f"folder-{parents.index(Path(name).parent)}" / Path(name).name
            for name in folders
        }
        for name, place in places.items():
            unpack(folders[name], place)
        folder = Path(tempfile.mkdtemp(prefix="worker-", dir=scratch))
        self._wall = await asyncio.to_thread(choose_wall, wall, lambda line: None)
        own = replace(
            limits,
            memory_bytes=shared_limits(usable_cores()).memory_bytes,
            readable=tuple(places.values()),
            cores=(),  # Ray has the cores
            visible_gpu=os.environ.get(VISIBLE_GPUS) if limits.visible_gpu is not None else None,
            kernels=None,
        )
        self._handle = await self._wall.start(folder, own)
        return places

    async def write(self, data: bytes) -> bool:
        """Write to the worker. False once it reads nothing any more."""
        assert self._handle is not None
        try:
            await self._handle.write(data)
        except ConnectionError:
            return False
        return True

    async def read(self, most: int) -> bytes:
        """Read of its output; empty at the end."""
        assert self._handle is not None
        return await self._handle.read(most)

    async def wait(self) -> Ended:
        assert self._handle is not None
        return Ended(await self._handle.wait(), self._handle.last_words())

    async def kill(self) -> None:
        """End it with all its processes, and remove its files."""
        if self._wall is not None and self._handle is not None:
            await self._wall.kill(self._handle)
        self._stack.close()


def pack(folder: Path, most_bytes: int) -> bytes:
    stream = io.BytesIO()
    total = 0

    def counted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal total
        if Path(member.name).name in ("__pycache__", ".git", ".venv"):
            return None
        total += member.size
        if total > most_bytes:
            raise WallError(
                f"the folder {str(folder)!r} is too large to be sent to the nodes of a cluster: it"
                f" has more than {most_bytes:,} bytes",
                "keep the environment in a folder of its own, or install it on the nodes as a"
                " package and give --env module:Class",
            )
        return member

    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(folder, ".", filter=counted)
    return stream.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
