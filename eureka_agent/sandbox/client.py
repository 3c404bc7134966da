"""One worker, as the driver speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from pydantic import ValidationError

from eureka_agent.archive.database import storage_errors
from eureka_agent.errors import EurekaError, WorkerDiedError
from eureka_agent.records import WrittenFitness
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.scratch import stderr_tail
from eureka_agent.sandbox.wall import Limits, Wall, WorkerHandle
from eureka_agent.worker.messages import EVENT, Command, Event, Fault, Open, Opened, Shutdown

START_SECONDS = 300.0
"""What a worker may take to import its libraries and open an environment, or to make it for trainings (a cold disk, a busy machine, kernels of a
GPU that are to be compiled)."""
_FAREWELL_SECONDS = 2.0
_LOOK_SECONDS = 1.0
"""How often a wait for an event looks whether the process is still there."""
_STANDSTILL_SECONDS = 0.5
"""Where a look ends so much too late, this process stood still: after Ctrl-Z, or with the whole machine."""
_QUEUED_EVENTS = 1024


def absolute_reference(environment: str) -> str:
    """What `--env` said, a folder's path made absolute: a worker's working folder is its scratch folder."""
    built_in = (resource_folder("envs") / environment / "env.py").is_file()
    folder = Path(environment).expanduser()
    is_folder = os.sep in environment or (folder.is_dir() and not built_in)
    return str(folder.resolve()) if is_folder and ":" not in environment else environment


class WorkerClient:
    """Commands in, events out, and the reason when it is over. A worker that breaks the protocol is killed."""

    def __init__(self, wall: Wall, handle: WorkerHandle, scratch: Path) -> None:
        """See `start`."""
        self._wall = wall
        self._handle = handle
        self.scratch = scratch
        """Folder that both sides share; file names in messages are relative to it."""
        self.last_sign_of_life = time.monotonic()
        """When the last event came, in `time.monotonic` seconds."""
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(_QUEUED_EVENTS)
        self._violation = ""
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, wall: Wall, scratch_root: Path, limits: Limits | None = None) -> WorkerClient:
        """A worker with a new scratch folder under `scratch_root`. Raises EurekaError when it cannot be started."""
        with storage_errors(scratch_root):
            scratch_root.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix="worker-", dir=scratch_root)).resolve()
        handle = await wall.start(scratch, limits or Limits())
        return cls(wall, handle, scratch)

    @property
    def alive(self) -> bool:
        """False once the process has ended or its events are over."""
        return self._handle.returncode is None and not self._reader.done()

    async def send(self, command: Command) -> None:
        """Send one command. To a dead worker nothing is sent: `receive` says that it is dead."""
        assert self._handle.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._handle.stdin.write(command.model_dump_json().encode() + b"\n")
            await self._handle.stdin.drain()

    async def receive(self, timeout_s: float | None = None) -> Event:
        """The next event. Raises WorkerDiedError when there will be none, TimeoutError when none came in time."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            began = time.monotonic()
            look = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, max(0.0, deadline - began))
            try:
                # not wait_for: up to Python 3.11 it swallows a cancellation that comes together with an event
                async with asyncio.timeout(look):
                    event = await self._events.get()
                break
            except TimeoutError:
                late = time.monotonic() - began - look
                if late > _STANDSTILL_SECONDS:  # what came meanwhile has not been read yet: that time does not count
                    self.last_sign_of_life += late
                    deadline = None if deadline is None else deadline + late + _LOOK_SECONDS
                if self._handle.returncode is not None:  # dead, but a process that it left holds its pipe open
                    await self._wall.kill(self._handle)
                elif deadline is not None and time.monotonic() >= deadline:
                    raise
        if event is None:
            self._events.put_nowait(None)  # for whoever asks again
            ending = self.ending()
            last_words = "its last words are above; " if "\n" in ending else ""
            raise WorkerDiedError(
                f"the worker {ending}", f"{last_words}if the machine is short of memory, use fewer --slots"
            )
        return event

    async def open(
        self,
        environment: str,
        task: str | None,
        device: str = "cpu",
        timeout_s: float = START_SECONDS,
        fitness: WrittenFitness | None = None,
    ) -> Opened:
        """Load an environment and a task, with `fitness` in place of the task's own metric where one is given.

        Raises EurekaError with the worker's words when they cannot be loaded.
        """
        reference = absolute_reference(environment)
        await self.send(Open(environment=reference, task=task, device=device, fitness=fitness))
        try:
            event = await self.receive(timeout_s)
        except TimeoutError:
            await self.kill()
            raise WorkerDiedError(
                f"opening the environment {environment!r} took longer than {timeout_s:g} s",
                "try again on a less busy machine, or look for a loop in the environment's constructor",
            ) from None
        if isinstance(event, Opened):
            return event
        await self.kill()
        if isinstance(event, Fault):
            raise EurekaError(event.message, event.hint)
        raise WorkerDiedError(f"the worker answered 'open' with {event.type!r}", "expected 'opened'")

    def ending(self) -> str:
        """How the process ended, in words, with the last lines of its standard error."""
        status = self._handle.returncode
        if self._violation:
            how = f"broke the protocol ({self._violation}) and was killed"
        elif status is None:
            how = "closed its end"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with exit status {status}"
        tail = stderr_tail(self.scratch)
        return f"{how}\n{tail}" if tail else how

    async def kill(self) -> None:
        """End it at once, with all its processes."""
        await self._wall.kill(self._handle)
        await self._end_reading()

    async def close(self) -> None:
        """Ask it to end, wait a moment, then end it. Leaves no process and no scratch folder, whatever happens meanwhile."""
        try:
            if self.alive:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_FAREWELL_SECONDS):
                        await self.send(Shutdown())  # which waits where the worker reads nothing
                        await self._handle.wait()
        finally:
            await asyncio.shield(self._end())

    async def _end(self) -> None:
        await self.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)

    async def _end_reading(self) -> None:
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _read(self) -> None:
        assert self._handle.stdout is not None
        try:
            while True:
                try:
                    line = await self._handle.stdout.readline()
                except ValueError:  # the stream's limit
                    self._violation = "an event is too long"
                    break
                if not line:
                    break
                try:
                    event = EVENT.validate_json(line)
                except ValidationError:
                    self._violation = f"not an event: {line[:80]!r}"
                    break
                self.last_sign_of_life = time.monotonic()
                await self._events.put(event)
            if not self._violation:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_FAREWELL_SECONDS):
                        await self._handle.wait()
            await self._wall.kill(self._handle)  # what will never speak again, and what it started
        finally:
            self._mark_end()

    def _mark_end(self) -> None:
        """Let `receive` know that nothing follows, also when nobody emptied the queue."""
        while True:
            try:
                self._events.put_nowait(None)
                return
            except asyncio.QueueFull:
                self._events.get_nowait()
