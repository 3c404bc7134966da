"""The process wall: a session of its own, a scrubbed environment, resource limits. Around each
reward there is a filter besides, and nothing else."""

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

from eureka_agent.errors import WallError, system_reason
from eureka_agent.sandbox.last_words import LastWords
from eureka_agent.sandbox.wall import Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import MARK, worker_environment
from eureka_agent.seccomp import kernel

FILTERED = (
    "your files, the network and other processes: a filter of system calls around every reward"
)
"""Covered where the kernel has such filters (`worker/confinement.py`)."""
BEHIND_THE_FILTER = "a reward that gets past that filter: nothing stands behind it"

_KILL_ROUNDS = 20
_KILL_SECONDS = 30.0
"""What a killed worker may take to go: its memory is freed, a call to a disk or a GPU comes
back."""
_DISCARDED_BYTES = 1 << 20


class ProcessHandle:
    """A worker that is a child process of the driver's."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """A process with pipes, of which this one reads standard error at once."""
        self.process = process
        self._ended = False
        self._words = LastWords()
        self._listening = asyncio.create_task(self._listen())
        # of two readers of a stream one may take the other's wake-up with it, and that one waits
        # for ever
        self._reading = asyncio.Lock()
        self._given_up = False

    @property
    def returncode(self) -> int | None:
        """See `WorkerHandle`."""
        return self.process.returncode

    async def write(self, data: bytes) -> None:
        """See `WorkerHandle`."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def read(self, most: int) -> bytes:
        """See `WorkerHandle`."""
        assert self.process.stdout is not None
        async with self._reading:
            return await self.process.stdout.read(most)

    async def wait(self) -> int:
        """See `WorkerHandle`."""
        return await self.process.wait()

    async def gone(self) -> None:
        """Wait until it has ended and nobody holds its pipes any more. What has not been read is
        thrown away: a pipe that is full and that nobody reads is never seen to close, and a worker
        that wrote without end would hold up the driver by its death.

        It is given up after `_KILL_SECONDS`: the kernel does not let it go, or somebody who is not
        to be found holds its pipes. They are closed here then, so that who reads or writes comes to
        an end.
        """
        if self._given_up:
            return
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                await self._wait_until_gone()
        except TimeoutError:
            self._given_up = True
            self.process._transport.close()  # type: ignore[attr-defined]  # the one way to close the pipes of readers

    async def _wait_until_gone(self) -> None:
        assert self.process.stdout is not None
        async with self._reading:
            while await self.process.stdout.read(_DISCARDED_BYTES):
                pass
        await self.process.wait()
        await asyncio.wait({self._listening})

    def last_words(self) -> str:
        """See `WorkerHandle`."""
        given_up = (
            f"it was killed, and was not gone after {_KILL_SECONDS:g} s: see what holds it (ps,"
            " dmesg)"
        )
        return "\n".join(filter(None, (self._words.text(), given_up if self._given_up else "")))

    def end(self) -> None:
        """Kill its session. Once: later its number, which is that of the session, may be somebody
        else's."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # not by `process.kill()` as well: that may collect the exit status that asyncio waits
            # for
            os.killpg(self.process.pid, signal.SIGKILL)

    async def _listen(self) -> None:
        """In memory and not in a file: behind no wall may a worker fill the disk."""
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
    """A process with pipes in a session of its own. Raises OSError.

    A cancellation waits for the start, then kills the session: asyncio's own kills one process, and
    waits for ever where that one had begun another, which holds the pipes.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            pass_fds=descriptors,
            start_new_session=True,  # Ctrl-C in the terminal reaches the driver alone
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
        if kernel.unavailable_reason() is None:
            self.covers = (*self.covers, FILTERED)
            self.does_not_cover = (BEHIND_THE_FILTER,)
        self._marks: dict[int, str] = {}

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """See `Wall.start`."""
        mark = secrets.token_hex(16)
        command = [
            *(
                sys.executable,
                "-P",
                "-m",
                "eureka_agent.worker",
                "--scratch",
                str(folder),
                "--parent",
                str(os.getpid()),
            ),
            *("--data-bytes", str(limits.memory_bytes), "--open-files", str(limits.open_files)),
            *("--file-bytes", str(limits.file_bytes)),
            *(("--cores", ",".join(map(str, limits.cores))) if limits.cores else ()),
            *(("--kernels", str(limits.kernels)) if limits.kernels is not None else ()),
        ]
        try:
            process = await start_process(
                command, worker_environment(folder, mark, limits.visible_gpu), folder
            )
        except OSError as error:
            raise WallError(
                f"cannot start a worker: {error.filename!r}: {system_reason(error)}",
                "free memory, disk or processes",
            ) from None
        self._marks[process.pid] = mark
        return ProcessHandle(process)

    async def kill(self, handle: WorkerHandle) -> None:
        """See `Wall.kill`. Also ends processes that left the worker's session."""
        assert isinstance(handle, ProcessHandle)
        handle.end()
        mark = self._marks.pop(handle.process.pid, None)
        if mark is not None:
            _kill_marked(
                mark
            )  # before the wait, which lasts until nobody holds the worker's pipes any more
        await handle.gone()


def _kill_marked(mark: str) -> None:
    """Kill every process whose environment holds the mark; again while there are any, as one may
    start another meanwhile."""
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
