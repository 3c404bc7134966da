"""The Docker wall: each worker in its own container with its code and no other files."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import NotFound

from eureka_agent.boundary.profile import profile_text, worker_profile
from eureka_agent.errors import OTHER_WALL, WallError
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.docker import leftovers
from eureka_agent.sandbox.docker.container import (
    Surroundings,
    container_options,
    ensure_image,
    mount_sources,
)
from eureka_agent.sandbox.docker.engine import CALL_SECONDS, Engine, connect
from eureka_agent.sandbox.docker.markers import Marker
from eureka_agent.sandbox.wall import LOST, LastWords, Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import check_readable, readable_files, without_system

HEADER_BYTES = 8
_STDOUT, _STDERR = 1, 2
_PIECE_BYTES = 1 << 16
_WAITING_PIECES = 32
"""Most unread output; beyond it the worker blocks."""
_SIGNALLED = 128
_LOOKS_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Ending:
    """End of a container."""

    returncode: int
    """Negative: the signal."""
    words: str = ""


def ending_of(state: dict[str, Any], memory_bytes: int) -> Ending | None:
    """Read the engine's state of a container; None while it runs."""
    if state.get("Running"):
        return None
    code = int(state.get("ExitCode") or 0)
    words = []
    if state.get("OOMKilled"):
        memory = f"{memory_bytes / 2**30:.1f} GiB"
        words.append(f"it took more memory than its {memory}, and the kernel killed it")
    if state.get("Error"):
        words.append(f"the engine says: {state['Error']}")
    return Ending(_SIGNALLED - code if code > _SIGNALLED else code, "; ".join(words))


class DockerHandle:
    """A `WorkerHandle` for a container."""

    def __init__(
        self,
        name: str,
        stream: Any,
        look: Callable[[], Awaitable[Ending | None]],
        kill: Callable[[], Awaitable[None]],
    ) -> None:
        """`stream`: from `attach_socket` for `name`; `look` asks for its end, `kill` ends it."""
        self.name = name
        self._stream = stream
        self._look = look
        self._kill = kill
        self._ending: Ending | None = None
        self._over = asyncio.Event()
        self._output: asyncio.Queue[bytes] = asyncio.Queue(_WAITING_PIECES)
        self._unread = b""
        self._ended_output = False
        self._words = LastWords()
        self._discards = False
        self._killing: asyncio.Future[None] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pump: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Take over the socket before the start, so that no other buffer gets its output."""
        # the SDK's socket has a timeout, and is closed with the SDK's answer
        own = socket.socket(fileno=os.dup(self._stream.fileno()))
        own.setblocking(False)
        self._reader, self._writer = await asyncio.open_unix_connection(
            sock=own, limit=_PIECE_BYTES
        )
        self._pump = asyncio.create_task(self._run())

    @property
    def returncode(self) -> int | None:
        return None if self._ending is None else self._ending.returncode

    async def write(self, data: bytes) -> None:
        assert self._writer is not None
        if self._writer.is_closing() or self._ended_output:
            raise ConnectionResetError("the worker has ended")
        self._writer.write(data)
        await self._writer.drain()
        if self._writer.is_closing():  # closed meanwhile: then the wait ends without an error
            raise ConnectionResetError("the worker has ended")

    async def read(self, most: int) -> bytes:
        if self._discards:
            return b""
        if not self._unread and not (self._ended_output and self._output.empty()):
            self._unread = await self._output.get()
        data, self._unread = self._unread[:most], self._unread[most:]
        return data

    async def wait(self) -> int:
        await self._over.wait()
        assert self._ending is not None
        return self._ending.returncode

    def last_words(self) -> str:
        words = [self._words.text()]
        if self._ending is not None:
            words.append(self._ending.words)
        return "\n".join(filter(None, words))

    def settle(self, ending: Ending) -> None:
        """Note the container's end; the first call counts."""
        if self._ending is None:
            self._ending = ending
            self._over.set()

    def discard(self) -> None:
        """Read, but discard output: the engine waits for a reader before a container's end."""
        self._discards = True
        while not self._output.empty():
            self._output.get_nowait()

    async def finish(self) -> None:
        tasks = {task for task in (self._pump, self._killing) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._end_output()
        if self._writer is not None:
            # `close` would first send data that an engine that hangs never takes
            self._writer.transport.abort()
        with contextlib.suppress(OSError):
            self._stream.close()

    async def _run(self) -> None:
        """Read output and errors, then poll for the container's end."""
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._part()
        finally:
            self._end_output()
        # it may run on after closing its output
        for look_s in itertools.chain(_LOOKS_S, itertools.repeat(1.0)):
            await asyncio.sleep(look_s)
            ending = await self._look()
            if ending is not None:
                self.settle(ending)
                return

    async def _part(self) -> None:
        assert self._reader is not None
        while True:
            header = await self._reader.readexactly(HEADER_BYTES)
            left = int.from_bytes(header[4:], "big")
            while left:
                data = await self._reader.read(min(left, _PIECE_BYTES))
                if not data:
                    return
                left -= len(data)
                if header[0] == _STDOUT and not self._discards:
                    await self._output.put(data)
                elif header[0] == _STDERR:
                    self._words.add(data)
            if self._words.flooded and self._killing is None:
                # concurrently, as output must be read meanwhile: see `discard`
                self._killing = asyncio.ensure_future(self._kill())

    def _end_output(self) -> None:
        self._ended_output = True
        if self._output.empty():
            self._output.put_nowait(b"")  # for a reader that waits


# ── the wall ──────────────────────────────────────────────────────────────────────────────────────


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
        """Removes leftovers. Raises WallError without an engine, and for an unreadable Python."""
        self._engine = engine or connect()
        self._marker = Marker(self._engine.host)
        self._containers: dict[str, int] = {}
        """Memory of each container that may exist, by name."""
        self._lost: set[str] = set()
        """Containers whose end the engine did not tell."""
        _check_python()
        leftovers.remove_leftovers(self._engine)

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
            await self._engine.run(leftovers.remove_container, self._engine, name)
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
        leftovers.remove_container(self._engine, name)
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
            await self._engine.run(leftovers.remove_container, self._engine, name)
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
        if limits.image:
            files = without_system(files)
        cores = self._engine.cores
        surroundings = Surroundings(
            image=ensure_image(self._engine, files, limits.image),
            labels=leftovers.container_labels(),
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
