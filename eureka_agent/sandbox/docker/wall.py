"""The Docker wall: every worker in a container of its own, which sees its code and nothing else of
the machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from docker.errors import NotFound

from eureka_agent.errors import WallError
from eureka_agent.fleet.cores import usable_cores
from eureka_agent.fleet.devices import VISIBLE_GPUS
from eureka_agent.sandbox.docker.build import Say, built_image, ensure_image
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
from eureka_agent.sandbox.wall import Limits, WorkerHandle
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
        """`engine`: the one to use, else this machine's; `say`: tells a person in one line that the
        image is being built.

        Raises WallError, with the next step, where no engine answers.
        """
        self._engine = engine or connect()
        self._say = say or _to_stderr
        self._image: str | None = None
        self._preparing = asyncio.Lock()
        self._marker = Marker(self._engine.host)
        self._containers: dict[str, int] = {}
        """Memory of each container that is not known to be gone, by its name."""

    async def prepare(self) -> str:
        """The image's tag. Builds the image where it is missing, and removes what dead drivers
        left; the first `start` does it otherwise. Raises WallError."""
        async with self._preparing:
            if self._image is None:
                await self._engine.run(self.make_ready)
            assert self._image is not None
            return self._image

    def make_ready(self) -> None:
        """The same as `prepare`, for a caller without an event loop to hold up. Raises
        WallError."""
        remove_leftovers(self._engine)
        recipe = current_recipe(self._engine.has_gpus)
        self._image = ensure_image(self._engine, recipe, self._say)

    def look(self) -> None:
        """Take the image that is there; build and remove nothing. Raises WallNotBuiltError where
        there is none, WallError."""
        self._image = built_image(self._engine)

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """See `Wall.start`. The worker does not see the folder."""
        image = await self.prepare()
        name = _NAME + secrets.token_hex(8)
        self._containers[name] = limits.memory_bytes
        self._marker.put()
        creation = asyncio.ensure_future(
            self._engine.run(self._create, name, folder, limits, image)
        )
        try:
            stream = await asyncio.shield(creation)
            handle = DockerHandle(
                name,
                stream,
                lambda: self._look(name, limits.memory_bytes),
                lambda: self._end(handle),
            )
            await handle.begin()
            try:
                await self._engine.run(self._engine.client.api.start, name)
            except BaseException:
                await handle.finish()
                raise
        except BaseException:
            # given up while the engine made it: it is made all the same
            await asyncio.shield(self._undo(name, creation))
            raise
        return handle

    async def kill(self, handle: WorkerHandle) -> None:
        """See `Wall.kill`."""
        assert isinstance(handle, DockerHandle)
        await self._end(handle)
        await handle.finish()

    async def _end(self, handle: DockerHandle) -> None:
        """Ask how the container ended, kill and remove it. In bounded time, whatever the engine
        does."""
        name = handle.name
        memory_bytes = self._containers.get(name)
        if memory_bytes is None:
            return
        handle.discard()
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                ending = await self._engine.run(self._kill, name, memory_bytes)
        except TimeoutError:
            ending = engine_gone(
                "the Docker engine gives no answer: its container may still be there"
            )
        except WallError as error:
            ending = engine_gone(f"{error.message}: its container may still be there")
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
            except NotFound:  # removed by name: killed
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

    def _forget(self, name: str) -> None:
        self._containers.pop(name, None)
        if not self._containers:
            self._marker.take_away()

    def _create(self, name: str, folder: Path, limits: Limits, image: str) -> Any:
        """Make the container and attach to it; it does not run yet."""
        mounted = prepare(readable_folders(limits.readable, os.environ), folder)
        if limits.kernels is not None:
            limits = replace(
                limits, kernels=prepare([limits.kernels], folder / "kernels")[0].outside
            )
        surroundings = Surroundings(
            image=image,
            labels=container_labels(),
            folders=mounted,
            python_path=(package_parent(), *python_path(os.environ)),
            seccomp=_seccomp_profile(),
            engine_cores=min(usable_cores(), self._engine.cores)
            if self._engine.limits_processor
            else None,
            gpus=_gpus_of_the_driver() if self._engine.has_gpus else (),
        )
        client = self._engine.client
        container = client.containers.create(**self._options(name, limits, surroundings))
        return client.api.attach_socket(container.id, _ATTACHED)

    def _options(self, name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
        """For tests, which have another program run in the same container."""
        return container_options(name, limits, surroundings)


def _seccomp_profile() -> str:
    """The project's profile as the engine takes it: its text, in the options. Raises WallError:
    without it the wall would be a lower one."""
    path = worker_profile()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise WallError(
            f"cannot read the profile {str(path)!r}: {error.strerror}", "install the package again"
        ) from None


def _gpus_of_the_driver() -> tuple[str, ...] | None:
    """As CUDA_VISIBLE_DEVICES names them; None: all."""
    visible = os.environ.get(VISIBLE_GPUS)
    return (
        None
        if visible is None
        else tuple(name for name in visible.split(",") if name and name != "-1")
    )


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
