"""The process wall: session, clean environment, resource limits, and rewards' filter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from eureka_agent.boundary import filters, landlock
from eureka_agent.errors import WallError, system_reason
from eureka_agent.sandbox.wall import LastWords, Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import MARK, worker_arguments, worker_environment

FILTERED = (
    "your files, the network and other processes: a filter of system calls around every reward"
)
"""Covered where the kernel has such filters (`worker/confinement.py`)."""
BEHIND_THE_FILTER = "a reward that gets past that filter: nothing stands behind it"

_KILL_ROUNDS = 20
_KILL_SECONDS = 30.0
"""Timeout of a killed worker: its memory is freed, a call to a disk or a GPU returns."""
_DISCARDED_BYTES = 1 << 20


class ProcessHandle:
    """A worker that is a child process of the driver."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """`process`: with pipes, of which standard error is read at once."""
        self.process = process
        self._ended = False
        self._words = LastWords()
        self._listening = asyncio.create_task(self._listen())
        # with two readers of a stream one may miss its wake-up, and wait for ever
        self._reading = asyncio.Lock()
        self._given_up = False

    @property
    def returncode(self) -> int | None:
        return self.process.returncode

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def read(self, most: int) -> bytes:
        assert self.process.stdout is not None
        async with self._reading:
            return await self.process.stdout.read(most)

    async def wait(self) -> int:
        return await self.process.wait()

    async def gone(self) -> None:
        """Wait until it has ended and its pipes are closed. Output is discarded, as a full pipe
        never closes. After `_KILL_SECONDS` the pipes are closed here: the kernel does not release
        the process, or an unknown one holds them."""
        if self._given_up:
            return
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                await self._wait_until_gone()
        except TimeoutError:
            self._given_up = True
            self.process._transport.close()  # type: ignore[attr-defined]  # no public way closes the readers' pipes

    async def _wait_until_gone(self) -> None:
        assert self.process.stdout is not None
        async with self._reading:
            while await self.process.stdout.read(_DISCARDED_BYTES):
                pass
        await self.process.wait()
        await asyncio.wait({self._listening})

    def last_words(self) -> str:
        given_up = (
            f"it was killed, and was not gone after {_KILL_SECONDS:g} s: see what holds it (ps,"
            " dmesg)"
        )
        return "\n".join(filter(None, (self._words.text(), given_up if self._given_up else "")))

    def end(self) -> None:
        """Kill its session, once: its number may be reused later."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # `process.kill()` may collect the exit status that asyncio waits for
            os.killpg(self.process.pid, signal.SIGKILL)

    async def _listen(self) -> None:
        """Keep the end of standard error in memory, as a worker must not fill the disk."""
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(_DISCARDED_BYTES):
            flooded = self._words.flooded
            self._words.add(data)
            if self._words.flooded and not flooded:
                self.end()


async def start_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    descriptors: tuple[int, ...] = (),
) -> asyncio.subprocess.Process:
    """Start a process with pipes in its own session. Raises OSError. A cancellation waits for the
    start, then kills the session: asyncio would wait for ever for children with the pipes."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            pass_fds=descriptors,
            start_new_session=True,  # Ctrl-C reaches the driver alone
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            handle = ProcessHandle(await starting)
            handle.end()
            await handle.gone()
        raise


class ProcessWall:
    """Workers as plain child processes with limits."""

    name = "process"
    covers: tuple[str, ...] = (
        "API keys and other environment variables",
        "memory, CPU time of dry runs, file sizes and open files",
        "worker processes that hang, crash or outlive the search",
    )
    does_not_cover: tuple[str, ...] = (
        "reading and writing your files",
        "the network",
        "the number of processes",
        "code that attacks the machine on purpose",
    )

    def __init__(self) -> None:
        if filters.unavailable_reason() is None:
            self.covers = (*self.covers, FILTERED)
            self.does_not_cover = (BEHIND_THE_FILTER,)
        self._marks: dict[int, str] = {}

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        mark = secrets.token_hex(16)
        arguments = worker_arguments(str(folder), limits, str(limits.kernels))
        command = [sys.executable, *arguments, "--parent", str(os.getpid())]
        if limits.writable is not None and landlock.version():
            command += ["--writable", str(folder), "/dev", *map(str, limits.writable)]
        environment = worker_environment(folder, mark, limits.visible_gpu)
        try:
            process = await start_process(command, environment, folder)
        except OSError as error:
            raise cannot_start(error) from None
        self._marks[process.pid] = mark
        return ProcessHandle(process)

    async def kill(self, handle: WorkerHandle) -> None:
        """See `Wall.kill`. Processes outside of the worker's session are ended as well."""
        assert isinstance(handle, ProcessHandle)
        handle.end()
        mark = self._marks.pop(handle.process.pid, None)
        if mark is not None:  # before the wait, as they may hold the worker's pipes
            _kill_marked(mark)
        await handle.gone()


def cannot_start(error: OSError) -> WallError:
    what = f"cannot start a worker: {error.filename!r}: {system_reason(error)}"
    return WallError(what, "free memory, disk or processes")


def _kill_marked(mark: str) -> None:
    """Kill every process with the mark in its environment, repeatedly, as they may start others."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(_KILL_ROUNDS):
        found = False
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted not in entry.read_bytes().split(b"\0"):
                    continue
                os.kill(int(entry.parent.name), signal.SIGKILL)
            except OSError:  # it ended, or is another user's
                continue
            found = True
        if not found:
            return
