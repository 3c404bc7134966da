"""A worker in a container: its streams over one socket of the engine, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from eureka_agent.sandbox.wall import LastWords

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
