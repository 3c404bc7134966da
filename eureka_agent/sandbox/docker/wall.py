"""The Docker wall: each worker in its own container with its code and no other files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any

import docker
from docker.errors import NotFound

from eureka_agent.boundary.profile import profile_text, worker_profile
from eureka_agent.errors import OTHER_WALL, WallError
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.docker.container import (
    Surroundings,
    container_options,
    ensure_image,
    mount_sources,
)
from eureka_agent.sandbox.docker.engine import CALL_SECONDS, Engine, connect
from eureka_agent.sandbox.docker.handle import DockerHandle, Ending, ending_of
from eureka_agent.sandbox.docker.leftovers import (
    container_labels,
    remove_container,
    remove_leftovers,
)
from eureka_agent.sandbox.docker.markers import Marker
from eureka_agent.sandbox.wall import LOST, Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import check_readable, readable_files

_NAME = "eureka-worker-"
_KILL_SECONDS = 2 * CALL_SECONDS
_ATTACHED = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}


class DockerWall:
    """Workers in containers."""

    name = "docker"
    covers: tuple[str, ...] = (
        "API keys and other environment variables",
        "reading and writing your files, other runs and other workers",
        "the network, every kind of socket to the outside",
        "other processes: seeing them, sending them signals",
        "memory, processes, open files, file sizes and what is written",
        "rights of root, and rare system calls by which kernels are attacked",
        "worker processes that hang, crash or outlive the search",
    )
    does_not_cover: tuple[str, ...] = (
        "defects of the kernel, of the engine and of a GPU's driver",
        "reading /usr, Python, its packages, the environment, `_shared` and folders of PYTHONPATH",
        "processor time: a worker may keep its cores busy until its job's time is over",
    )

    def __init__(self, engine: Engine | None = None) -> None:
        """Removes leftovers. Raises WallError without an engine, and for a Python that a container
        cannot use."""
        self._engine = engine or connect()
        self._marker = Marker(self._engine.host)
        self._containers: dict[str, int] = {}
        """Memory of each container that may exist, by name."""
        self._lost: set[str] = set()
        """Containers whose end the engine did not tell."""
        _check_python()
        remove_leftovers(self._engine)

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """See `Wall.start`. The worker does not see the folder."""
        name = _NAME + secrets.token_hex(8)
        self._containers[name] = limits.memory_bytes
        self._marker.put()
        creation = asyncio.ensure_future(self._engine.run(self._create, name, folder, limits))
        try:
            stream = await asyncio.shield(creation)
            memory_bytes = limits.memory_bytes
            handle = DockerHandle(
                name, stream, lambda: self._look(name, memory_bytes), lambda: self._end(handle)
            )
            await handle.begin()
            try:
                await self._engine.run(self._engine.client.api.start, name)
            except BaseException:
                await handle.finish()
                raise
        except BaseException:
            # a cancelled start does not stop the engine from making it
            await asyncio.shield(self._undo(name, creation))
            raise
        return handle

    async def check(self) -> None:
        await self._engine.run(self._engine.client.ping)
        for name in list(self._lost):
            await self._engine.run(remove_container, self._engine, name)
            self._forget(name)

    async def kill(self, handle: WorkerHandle) -> None:
        assert isinstance(handle, DockerHandle)
        await self._end(handle)
        await handle.finish()

    async def _end(self, handle: DockerHandle) -> None:
        """Read the container's end, kill and remove it, in bounded time."""
        name = handle.name
        memory_bytes = self._containers.get(name)
        if memory_bytes is None:
            return
        handle.discard()
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                ending = await self._engine.run(self._kill, name, memory_bytes)
        except (TimeoutError, WallError) as error:
            silent = "the Docker engine gives no answer"
            why = error.message if isinstance(error, WallError) else silent
            ending = Ending(LOST, f"{why}: its container may still be there")
            self._lost.add(name)
        else:
            self._forget(name)
        handle.settle(ending)

    def _kill(self, name: str, memory_bytes: int) -> Ending:
        ending = self._inspect(name, memory_bytes)
        remove_container(self._engine, name)
        return ending or Ending(-signal.SIGKILL)

    def _inspect(self, name: str, memory_bytes: int) -> Ending | None:
        try:
            state = self._engine.client.api.inspect_container(name)["State"]
        except NotFound:  # killed and removed
            return Ending(-signal.SIGKILL)
        return ending_of(state, memory_bytes)

    async def _look(self, name: str, memory_bytes: int) -> Ending | None:
        try:
            return await self._engine.run(self._inspect, name, memory_bytes)
        except WallError as error:
            return Ending(LOST, error.message)

    async def _undo(self, name: str, creation: asyncio.Future[Any]) -> None:
        with contextlib.suppress(WallError):
            stream = await creation
            with contextlib.suppress(OSError):
                stream.close()
        with contextlib.suppress(WallError):
            await self._engine.run(remove_container, self._engine, name)
            self._forget(name)
            return
        self._lost.add(name)

    def _forget(self, name: str) -> None:
        self._containers.pop(name, None)
        self._lost.discard(name)
        if not self._containers:
            self._marker.take_away()

    def _create(self, name: str, folder: Path, limits: Limits) -> Any:
        """Create the container and attach to it, without starting it."""
        check_readable(limits)
        files = readable_files(limits)
        cores = self._engine.cores
        surroundings = Surroundings(
            image=ensure_image(self._engine, files),
            labels=container_labels(),
            sources=mount_sources(files, folder),
            seccomp=profile_text(worker_profile()),
            engine_cores=None if cores is None else min(usable_cores(), cores),
        )
        client = self._engine.client
        container = client.containers.create(**self._options(name, limits, surroundings))
        return client.api.attach_socket(container.id, _ATTACHED)

    def _options(self, name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
        """Options of a container; tests run another program in it."""
        return container_options(name, limits, surroundings)


def _check_python() -> None:
    """Raise WallError where only its owner may read this Python, as a worker runs as nobody."""
    for file in (os.path.realpath(sys.executable), os.__file__, docker.__file__):
        if not os.stat(file).st_mode & 0o4:
            raise WallError(
                f"a worker in a container cannot read {file!r}, which only its owner may",
                f"let everybody read this Python: chmod -R a+rX {sys.prefix!r} {sys.base_prefix!r}"
                + OTHER_WALL,
            )
