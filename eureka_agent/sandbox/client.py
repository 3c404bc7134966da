"""One worker, as the driver speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from eureka_agent.archive.safe_files import read_plain
from eureka_agent.archive.storage_errors import storage_errors
from eureka_agent.errors import EurekaError, WorkerDiedError, signal_name, system_reason
from eureka_agent.protocol.bounds import MAX_FILE_BYTES, MAX_LINE_BYTES, FileHeader, plain_text
from eureka_agent.protocol.commands import Command, Open, Shutdown
from eureka_agent.protocol.events import EVENT, Evaluated, Event, Fault, Opened
from eureka_agent.records import WrittenFitness
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.inbox import Inbox, WorkerFileError
from eureka_agent.sandbox.wall import Limits, Wall, WorkerHandle
from eureka_agent.sandbox.worker_faults import raised_by

START_SECONDS = 300.0
"""What a worker may take to import its libraries and open an environment, or to make it for
trainings (a cold disk, a busy machine, kernels of a GPU that are to be compiled)."""
_FAREWELL_SECONDS = 2.0
_LOOK_SECONDS = 1.0
"""How often a wait for an event looks whether the process is still there."""
_STANDSTILL_SECONDS = 0.5
"""Where a look ends so much too late, this process stood still: after Ctrl-Z, or with the whole
machine."""
_QUEUED_EVENTS = 1024
_QUEUED_BYTES = MAX_LINE_BYTES
"""Of events that nobody has received yet; one that is larger waits alone. Parsed they take many
times as much."""
_READ_BYTES = 1 << 18
_MOST_SOURCES = 100
_WALL_FOLDER = "wall"
"""Of a worker's folder the part that is for the wall."""
_INBOX_FOLDER = "inbox"
"""The part that no worker sees, unless nothing keeps it from the person's files."""


def absolute_reference(environment: str) -> str:
    """What `--env` said, a folder's path made absolute: a worker's working folder is another
    one."""
    folder = environment_folder(environment)
    return environment if folder is None else str(folder)


def environment_folder(environment: str) -> Path | None:
    """The person's own folder that `--env` names; None for a built-in environment and for one
    without a folder."""
    if not environment:
        return None
    built_in = (resource_folder("envs") / environment / "env.py").is_file()
    folder = Path(
        os.path.expanduser(environment)
    )  # which leaves a person that nobody knows as it is
    is_folder = os.sep in environment or (folder.is_dir() and not built_in)
    return folder.resolve() if is_folder and ":" not in environment else None


class _ProtocolViolationError(Exception):
    """What a worker wrote is no event."""


class WorkerClient:
    """Commands in, events out, and the reason when it is over. A worker that breaks the protocol is
    killed."""

    def __init__(self, wall: Wall, handle: WorkerHandle, folder: Path) -> None:
        """See `start`."""
        self.environment = ""
        """The one that was opened last, as a person calls it."""
        self._wall = wall
        self._handle = handle
        self._folder = folder
        self.inbox = Inbox(folder / _INBOX_FOLDER)
        """Files that the worker sent. Those that an event names are there when it comes."""
        self._sources: dict[str, Path] = {}
        """Sources of the latest files that it was sent, by the names that it has them under."""
        self._given: set[str] = set()
        """Files that it was sent once and for all, as far as it is to have them still."""
        self._unread = bytearray()
        self.last_sign_of_life = time.monotonic()
        """When it last said something of what it was asked to do, in `time.monotonic` seconds; for
        whoever asked to note."""
        self.patience_s = START_SECONDS
        """How long it may read nothing of what it is sent. A trainer reads between two
        iterations."""
        self._events: asyncio.Queue[tuple[Event, int] | None] = asyncio.Queue(_QUEUED_EVENTS)
        """With the length of each one's line."""
        self._queued_bytes = 0
        self._received = asyncio.Event()
        """Set when one was taken out."""
        self._violation = ""
        self._failure: EurekaError | None = None
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, wall: Wall, root: Path, limits: Limits | None = None, environment: str = ""
    ) -> WorkerClient:
        """A worker with a new folder under `root`, which may read that of the `environment`. Raises
        EurekaError when it cannot be started."""
        with storage_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="worker-", dir=root)).resolve()
            (folder / _WALL_FOLDER).mkdir()
        limits = limits or Limits()
        if (own := environment_folder(environment)) is not None:
            limits = replace(limits, readable=(*limits.readable, own))
        try:
            handle = await wall.start(folder / _WALL_FOLDER, limits)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(wall, handle, folder)

    @property
    def alive(self) -> bool:
        """False once the process has ended or its events are over."""
        return self._handle.returncode is None and not self._reader.done()

    async def send(self, command: Command) -> None:
        """Send one command. To a dead worker nothing is sent: `receive` says that it is dead."""
        await self._write(command.model_dump_json().encode() + b"\n")

    async def give(self, path: Path, name: str, once: bool = False) -> None:
        """Send a file, which later commands call `name`. `once`: not where one of that name was
        sent before.

        Raises EurekaError for a file that cannot be read or is too large.
        """
        if once and name in self._given:
            return
        try:
            content = await asyncio.to_thread(read_plain, path, MAX_FILE_BYTES)
        except OSError as error:
            raise EurekaError(
                f"cannot give a worker the file {str(path)!r}: {system_reason(error)}",
                "restore it, or train again",
            ) from None
        self._sources[name] = path
        if len(self._sources) > _MOST_SOURCES:
            del self._sources[next(iter(self._sources))]
        header = FileHeader(name=name, size=len(content)).model_dump_json().encode()
        await self._write(header + b"\n" + content)
        if once:
            self._given.add(name)

    def keeps(self, names: Iterable[str]) -> None:
        """Of the files that it was sent once it has only these any more, after the command that is
        sent next."""
        self._given.intersection_update(names)

    async def _write(self, data: bytes) -> None:
        """Write what a worker takes in good time. One that reads nothing is killed: who waits for
        it here has no clock of his own."""
        try:
            async with asyncio.timeout(self.patience_s):
                await self._handle.write(data)
        except ConnectionError:
            pass
        except TimeoutError:
            self._violation = self._violation or f"it read nothing for {self.patience_s:g} s"
            await self._wall.kill(self._handle)

    async def receive(self, timeout_s: float | None = None) -> Event:
        """The next event. Raises WorkerDiedError when there will be none, TimeoutError when none
        came in time.

        Raises EurekaError where a file of the worker's could not be stored.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            began = time.monotonic()
            look = (
                _LOOK_SECONDS
                if deadline is None
                else min(_LOOK_SECONDS, max(0.0, deadline - began))
            )
            try:
                # not wait_for: up to Python 3.11 it swallows a cancellation that comes together
                # with an event
                async with asyncio.timeout(look):
                    entry = await self._events.get()
                break
            except TimeoutError:
                late = time.monotonic() - began - look
                if (
                    late > _STANDSTILL_SECONDS
                ):  # what came meanwhile has not been read yet: that time does not count
                    self.last_sign_of_life += late
                    deadline = None if deadline is None else deadline + late + _LOOK_SECONDS
                if (
                    self._handle.returncode is not None
                ):  # dead, but a process that it left holds its pipe open
                    await self._wall.kill(self._handle)
                elif deadline is not None and time.monotonic() >= deadline:
                    raise
        if entry is None:
            self._events.put_nowait(None)  # for whoever asks again
            if self._failure is not None:
                raise self._failure
            ending = self.ending()
            last_words = "its last words are above; " if "\n" in ending else ""
            raise WorkerDiedError(
                f"the worker {ending}",
                f"{last_words}if the machine is short of memory, use fewer --slots",
            )
        event, size = entry
        self._queued_bytes -= size
        self._received.set()
        return self._with_own_paths(event)

    def _with_own_paths(self, event: Event) -> Event:
        """The event, its faults speaking of the files where they are here: the worker's folder is
        nowhere that a person can look."""
        if isinstance(event, Fault):
            return event.model_copy(update={"message": self._own_paths(event.message)})
        if isinstance(event, Evaluated):
            scores = (
                score.model_copy(update={"fault": self._own_paths(score.fault)})
                for score in event.scores
            )
            return event.model_copy(update={"scores": tuple(scores)})
        return event

    def _own_paths(self, text: str) -> str:
        for name, path in self._sources.items():
            *before, rest = text.split(f"/{name}'")
            if before:
                quote = "'"
                text = "".join(f"{part.rpartition(quote)[0]}'{path}'" for part in before) + rest
        return text

    async def open(
        self,
        environment: str,
        task: str | None,
        device: str = "cpu",
        timeout_s: float = START_SECONDS,
        fitness: WrittenFitness | None = None,
        rehearse: bool = False,
    ) -> Opened:
        """Load an environment and a task, with `fitness` in place of the task's own metric where
        one is given; `rehearse`: and try it out.

        Raises EurekaError with the worker's words when they cannot be loaded.
        """
        self.environment = environment
        reference = absolute_reference(environment)
        await self.send(
            Open(
                environment=reference, task=task, device=device, fitness=fitness, rehearse=rehearse
            )
        )
        try:
            event = await self.receive(timeout_s)
        except TimeoutError:
            await self.kill()
            raise WorkerDiedError(
                f"opening the environment {environment!r} took longer than {timeout_s:g} s",
                "try again on a less busy machine, or look for a loop in the environment's"
                " constructor",
            ) from None
        if isinstance(event, Opened):
            return event
        await self.kill()
        if isinstance(event, Fault):
            raise raised_by(event, EurekaError, environment, opening=True)
        raise WorkerDiedError(
            f"the worker answered 'open' with {event.type!r}", "expected 'opened'"
        )

    def ending(self) -> str:
        """How the process ended, in words, with the last lines of its standard error."""
        status = self._handle.returncode
        if self._violation:
            how = f"broke the protocol ({self._violation}) and was killed"
        elif status is None:
            how = "closed its end"
        elif status < 0:
            how = f"was ended by {signal_name(-status)}"
        else:
            how = f"ended with exit status {status}"
        tail = plain_text(self._handle.last_words())
        return f"{how}\n{tail}" if tail else how

    def last_words(self) -> str:
        """The end of what it wrote to standard error; nothing of it is trusted."""
        return self._handle.last_words()

    async def kill(self) -> None:
        """End it at once, with all its processes."""
        await self._wall.kill(self._handle)
        await self._end_reading()

    async def close(self) -> None:
        """Ask it to end, wait a moment, then end it. Leaves no process and no folder, whatever
        happens meanwhile."""
        try:
            if self.alive:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_FAREWELL_SECONDS):
                        await self.send(Shutdown())  # which waits where the worker reads nothing
                        await self._handle.wait()
        finally:
            ending = asyncio.ensure_future(self._end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await asyncio.wait(
                    {ending}
                )  # else whoever cancelled goes on while the folder is still there
                raise

    async def _end(self) -> None:
        await self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _end_reading(self) -> None:
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _read(self) -> None:
        try:
            try:
                while (line := await self._next_line()) is not None:
                    event = _parsed(line)
                    if isinstance(event, FileHeader):
                        await self.inbox.receive(event, self._read_some)
                    else:
                        await self._put(event, len(line))
            except _ProtocolViolationError as error:
                self._violation = str(error)
            except WorkerFileError as error:
                self._violation = error.message
            except EurekaError as error:  # a full disk
                self._failure = error
            if not self._violation and self._failure is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_FAREWELL_SECONDS):
                        await self._handle.wait()
            await self._wall.kill(self._handle)  # what will never speak again, and what it started
        finally:
            self._mark_end()

    async def _put(self, event: Event, size: int) -> None:
        """Queue an event, once there is room for it."""
        while self._queued_bytes and self._queued_bytes + size > _QUEUED_BYTES:
            self._received.clear()
            await self._received.wait()
        self._queued_bytes += size
        await self._events.put((event, size))

    async def _next_line(self) -> bytes | None:
        """The next line without its end; None at the end of all."""
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > MAX_LINE_BYTES:
                raise _ProtocolViolationError("an event is too long")
            part = await self._handle.read(_READ_BYTES)
            if not part:
                return None
            self._unread += part
        if end > MAX_LINE_BYTES:
            raise _ProtocolViolationError("an event is too long")
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    async def _read_some(self, most: int) -> bytes:
        """At most so many of the bytes that come next; none at the end."""
        if not self._unread:
            self._unread += await self._handle.read(_READ_BYTES)
        part = bytes(self._unread[:most])
        del self._unread[:most]
        return part

    def _mark_end(self) -> None:
        """Let `receive` know that nothing follows, also when nobody emptied the queue."""
        while True:
            try:
                self._events.put_nowait(None)
                return
            except asyncio.QueueFull:
                self._events.get_nowait()


def _parsed(line: bytes) -> Event:
    try:
        return EVENT.validate_json(line)
    except ValidationError:
        raise _ProtocolViolationError(f"not an event: {line[:80]!r}") from None
