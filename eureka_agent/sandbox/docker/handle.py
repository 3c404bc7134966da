"""A worker in a container: its two streams over one socket of the engine's, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from eureka_agent.sandbox.last_words import LastWords

HEADER_BYTES = 8
_STDOUT, _STDERR = 1, 2
_WAITING_BYTES = 1 << 20
"""Output that waits to be read; then the worker waits."""
_PIECE_BYTES = 1 << 16
_SIGNALLED = 128
_ENGINE_GONE = 125
"""Exit status, as the engine's own client gives it, where nobody can tell the worker's."""
_LOOKS_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Ending:
    """How a container ended."""

    returncode: int
    """Negative: the signal."""
    words: str = ""
    """What the exit status does not tell."""


def ending_of(state: dict[str, Any], memory_bytes: int) -> Ending | None:
    """From what the engine says of a container's state; None while it runs."""
    if state.get("Running"):
        return None
    code = int(state.get("ExitCode") or 0)
    words = []
    if state.get("OOMKilled"):
        words.append(
            f"it took more memory than its {memory_bytes / 2**30:.1f} GiB, and the kernel killed it"
        )
    if state.get("Error"):
        words.append(f"the engine says: {state['Error']}")
    return Ending(_SIGNALLED - code if code > _SIGNALLED else code, "; ".join(words))


class DockerHandle:
    """See `WorkerHandle`."""

    def __init__(
        self,
        name: str,
        stream: Any,
        look: Callable[[], Awaitable[Ending | None]],
        kill: Callable[[], Awaitable[None]],
    ) -> None:
        """`stream`: what the SDK's `attach_socket` gave for the container `name`; `look` asks how
        it ended, `kill` ends it."""
        self.name = name
        self._stream = stream
        self._look = look
        self._kill = kill
        self._ending: Ending | None = None
        self._over = asyncio.Event()
        self._output = bytearray()
        self._changed = asyncio.Event()
        self._read_out = asyncio.Event()
        self._ended_output = False
        self._words = LastWords()
        self._discards = False
        self._killing: asyncio.Future[None] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pump: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Take over the socket; before the container starts, so that nothing of it was read into
        somebody else's buffer."""
        # the SDK's socket has a timeout, and is closed when the SDK's answer is thrown away
        own = socket.socket(fileno=os.dup(self._stream.fileno()))
        own.setblocking(False)
        self._reader, self._writer = await asyncio.open_unix_connection(
            sock=own, limit=_PIECE_BYTES
        )
        self._pump = asyncio.create_task(self._run())

    @property
    def returncode(self) -> int | None:
        """See `WorkerHandle`."""
        return None if self._ending is None else self._ending.returncode

    async def write(self, data: bytes) -> None:
        """See `WorkerHandle`."""
        assert self._writer is not None
        if self._writer.is_closing() or self._ended_output:
            raise ConnectionResetError("the worker has ended")
        self._writer.write(data)
        await self._writer.drain()
        if self._writer.is_closing():  # meanwhile: then the wait ends without an error
            raise ConnectionResetError("the worker has ended")

    async def read(self, most: int) -> bytes:
        """See `WorkerHandle`."""
        while not self._output and not self._ended_output:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._output[:most])
        del self._output[:most]
        self._read_out.set()
        return data

    async def wait(self) -> int:
        """See `WorkerHandle`."""
        await self._over.wait()
        assert self._ending is not None
        return self._ending.returncode

    def last_words(self) -> str:
        """See `WorkerHandle`."""
        words = [self._words.text()]
        if self._ending is not None:
            words.append(self._ending.words)
        return "\n".join(filter(None, words))

    def settle(self, ending: Ending) -> None:
        """How it ended is known. The first word counts."""
        if self._ending is None:
            self._ending = ending
            self._over.set()

    def discard(self) -> None:
        """Read on, but keep no more output: the engine does not end a container before somebody has
        taken what that has written."""
        self._discards = True
        self._read_out.set()

    async def finish(self) -> None:
        """Let go of the socket. What has come and was not read can still be read."""
        tasks = {task for task in (self._pump, self._killing) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._close()

    def _close(self) -> None:
        self._end_output()
        if self._writer is not None:
            # `close` would first send what an engine that hangs never takes
            self._writer.transport.abort()
        with contextlib.suppress(OSError):
            self._stream.close()

    async def _run(self) -> None:
        """Part what comes into output and errors, and find out how it ended."""
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._part()
        finally:
            self._end_output()
        for look_s in itertools.chain(
            _LOOKS_S, itertools.repeat(1.0)
        ):  # it may have closed its output and live on
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
                if header[0] == _STDOUT:
                    await self._put(data)
                elif header[0] == _STDERR:
                    self._words.add(data)
            if self._words.flooded and self._killing is None:
                self._killing = asyncio.ensure_future(
                    self._kill()
                )  # while this reads on: see `discard`

    async def _put(self, data: bytes) -> None:
        while len(self._output) >= _WAITING_BYTES and not self._discards:
            self._read_out.clear()
            await self._read_out.wait()
        if self._discards:
            return
        self._output += data
        self._changed.set()

    def _end_output(self) -> None:
        self._ended_output = True
        self._changed.set()


def engine_gone(words: str) -> Ending:
    """For a container of which the engine tells nothing any more."""
    return Ending(_ENGINE_GONE, words)
