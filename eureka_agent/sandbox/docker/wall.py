"""The Docker wall: each worker in its own container with its code and no other files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from docker.errors import NotFound

from eureka_agent.errors import WallError
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.docker.build import built_image, ensure_image
from eureka_agent.sandbox.docker.container import Surroundings, container_options
from eureka_agent.sandbox.docker.engine import CALL_SECONDS, Engine, connect, engine_errors
from eureka_agent.sandbox.docker.handle import DockerHandle, Ending, ending_of, engine_gone
from eureka_agent.sandbox.docker.leftovers import (
    container_labels,
    remove_container,
    remove_leftovers,
)
from eureka_agent.sandbox.docker.markers import Marker
from eureka_agent.sandbox.docker.mounts import prepare, readable_folders
from eureka_agent.sandbox.docker.recipe import current_recipe
from eureka_agent.sandbox.readable import package_parent, python_path
from eureka_agent.sandbox.wall import VISIBLE_GPUS, Limits, Say, WorkerHandle, print_to_stderr
from eureka_agent.seccomp.profile import worker_profile

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
        "reading this program, the environment's folder and the folders of PYTHONPATH",
        "processor time: a worker may keep its cores busy until its job's time is over",
    )

    def __init__(self, engine: Engine | None = None, say: Say | None = None) -> None:
        """`say` receives a note when the image is built. Raises WallError without an engine."""
        self._engine = engine or connect()
        self._say = say or print_to_stderr
        self._image: str | None = None
        self._preparing = asyncio.Lock()
        self._marker = Marker(self._engine.host)
        self._containers: dict[str, int] = {}
        """Memory of each container that may exist, by name."""
        self._lost: set[str] = set()
        """Containers whose end the engine did not tell."""

    async def prepare(self) -> str:
        """Build the image if it is missing, remove leftovers, return the tag. Raises WallError."""
        async with self._preparing:
            if self._image is None:
                await self._engine.run(self.make_ready)
            assert self._image is not None
            return self._image

    def make_ready(self) -> None:
        """Do the same as `prepare`, without an event loop. Raises WallError."""
        remove_leftovers(self._engine)
        recipe = current_recipe(self._engine.has_gpus)
        self._image = ensure_image(self._engine, recipe, self._say)

    def look(self) -> None:
        """Use the existing image. Raises WallNotBuiltError without one, and WallError."""
        self._image = built_image(self._engine)

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """See `Wall.start`. The worker does not see the folder."""
        image = await self.prepare()
        name = _NAME + secrets.token_hex(8)
        self._containers[name] = limits.memory_bytes
        self._marker.put()
        creating = self._engine.run(self._create, name, folder, limits, image)
        creation = asyncio.ensure_future(creating)
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
        """See `Served.check`."""
        await self._engine.run(self._engine.client.ping)
        for name in list(self._lost):
            await self._engine.run(remove_container, self._engine, name)
            self._forget(name)

    async def kill(self, handle: WorkerHandle) -> None:
        """See `Wall.kill`."""
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
            ending = engine_gone(f"{why}: its container may still be there")
            self._lost.add(name)
        else:
            self._forget(name)
        handle.settle(ending)

    def _kill(self, name: str, memory_bytes: int) -> Ending:
        ending = None
        with engine_errors(self._engine.host), contextlib.suppress(NotFound):
            state = self._engine.client.api.inspect_container(name)["State"]
            ending = ending_of(state, memory_bytes)
        remove_container(self._engine, name)
        return ending or Ending(-signal.SIGKILL)

    async def _look(self, name: str, memory_bytes: int) -> Ending | None:
        def look() -> Ending | None:
            try:
                state = self._engine.client.api.inspect_container(name)["State"]
            except NotFound:  # killed and removed
                return Ending(-signal.SIGKILL)
            return ending_of(state, memory_bytes)

        try:
            return await self._engine.run(look)
        except WallError as error:
            return engine_gone(error.message)

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

    def _create(self, name: str, folder: Path, limits: Limits, image: str) -> Any:
        """Create the container and attach to it, without starting it."""
        mounted = prepare(readable_folders(limits.readable, os.environ), folder)
        if limits.kernels is not None:
            (kernels,) = prepare([limits.kernels], folder / "kernels")
            limits = replace(limits, kernels=kernels.outside)
        cores = min(usable_cores(), self._engine.cores)
        surroundings = Surroundings(
            image=image,
            labels=container_labels(),
            folders=mounted,
            python_path=(package_parent(), *python_path(os.environ)),
            seccomp=_seccomp_profile(),
            engine_cores=cores if self._engine.limits_processor else None,
            gpus=_gpus_of_the_driver() if self._engine.has_gpus else (),
        )
        client = self._engine.client
        container = client.containers.create(**self._options(name, limits, surroundings))
        return client.api.attach_socket(container.id, _ATTACHED)

    def _options(self, name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
        """Options of a container; tests run another program in it."""
        return container_options(name, limits, surroundings)


def _seccomp_profile() -> str:
    """The project's seccomp profile as text for the engine. Raises WallError."""
    path = worker_profile()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"cannot read the profile {str(path)!r}: {error.strerror}"
        raise WallError(what, "install the package again") from None


def _gpus_of_the_driver() -> tuple[str, ...] | None:
    """Names in CUDA_VISIBLE_DEVICES; None: all GPUs."""
    visible = os.environ.get(VISIBLE_GPUS)
    if visible is None:
        return None
    return tuple(name for name in visible.split(",") if name and name != "-1")
