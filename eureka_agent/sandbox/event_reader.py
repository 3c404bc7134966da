"""Events of a worker, read as they come and within bounds."""

from __future__ import annotations

import asyncio
import contextlib

from pydantic import ValidationError

from eureka_agent import errors
from eureka_agent.boundary import bounds
from eureka_agent.boundary.events import EVENT, Event
from eureka_agent.sandbox.inbox import Inbox, WorkerFileError
from eureka_agent.sandbox.wall import Wall, WorkerHandle
from eureka_agent.settings import validation_fault
from eureka_agent.text import plain_line

EXIT_SECONDS = 2.0
_QUEUED_EVENTS = 1024
_QUEUED_BYTES = bounds.MAX_LINE_BYTES
"""Bound of the queued events' lines: parsed they take many times as much memory."""
_READ_BYTES = 1 << 18
_MOST_FAULTS = 100


class _ProtocolViolationError(Exception):
    """A line of a worker that is no event."""


class EventReader:
    """Reads until the worker's stream ends or breaks the protocol, then kills the worker."""

    def __init__(self, wall: Wall, handle: WorkerHandle, inbox: Inbox) -> None:
        """Starts to read at once."""
        self.violation = ""
        self.failure: errors.EurekaError | None = None
        """Error of the driver that ended the reading, such as a full disk."""
        self._wall = wall
        self._handle = handle
        self._inbox = inbox
        self._unread = bytearray()
        self._events: asyncio.Queue[tuple[Event, int] | None] = asyncio.Queue(_QUEUED_EVENTS)
        """Events, each with the length of its line; None is the end."""
        self._queued_bytes = 0
        self._taken = asyncio.Event()
        """Set when an event was taken from the queue."""
        self._task = asyncio.create_task(self._read())

    @property
    def done(self) -> bool:
        return self._task.done()

    async def next_event(self, timeout_s: float) -> Event | None:
        """The next event, or None at the end. Raises TimeoutError."""
        # up to Python 3.11 wait_for swallows a cancellation that comes together with an event
        async with asyncio.timeout(timeout_s):
            entry = await self._events.get()
        if entry is None:
            self._events.put_nowait(None)  # for the next call
            return None
        event, size = entry
        self._queued_bytes -= size
        self._taken.set()
        return event

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _read(self) -> None:
        try:
            try:
                while (line := await self._next_line()) is not None:
                    event = _parsed(line)
                    if isinstance(event, bounds.FileHeader):
                        await self._inbox.receive(event, self._read_some)
                    else:
                        await self._put(event, len(line))
            except _ProtocolViolationError as error:
                self.violation = str(error)
            except WorkerFileError as error:
                self.violation = error.message
            except errors.EurekaError as error:  # a full disk
                self.failure = error
            if not self.violation and self.failure is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(EXIT_SECONDS):
                        await self._handle.wait()
            await self._wall.kill(self._handle)  # with the processes that it started
        finally:
            self._mark_end()

    async def _put(self, event: Event, size: int) -> None:
        while self._queued_bytes and self._queued_bytes + size > _QUEUED_BYTES:
            self._taken.clear()
            await self._taken.wait()
        self._queued_bytes += size
        await self._events.put((event, size))

    async def _next_line(self) -> bytes | None:
        """The next line without its line end, or None at the end of the stream."""
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > bounds.MAX_LINE_BYTES:
                raise _ProtocolViolationError("an event is too long")
            part = await self._handle.read(_READ_BYTES)
            if not part:
                return None
            self._unread += part
        if end > bounds.MAX_LINE_BYTES:
            raise _ProtocolViolationError("an event is too long")
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    async def _read_some(self, most: int) -> bytes:
        """The next bytes, at most `most`; empty at the end of the stream."""
        if not self._unread:
            self._unread += await self._handle.read(_READ_BYTES)
        part = bytes(self._unread[:most])
        del self._unread[:most]
        return part

    def _mark_end(self) -> None:
        """Put the end into the queue, in place of an event if the queue is full."""
        while True:
            try:
                self._events.put_nowait(None)
                return
            except asyncio.QueueFull:
                self._events.get_nowait()


def _parsed(line: bytes) -> Event:
    try:
        return EVENT.validate_json(line)
    except ValidationError as error:
        fault = f"not an event: {line[:80]!r}"
        if error.error_count() < _MOST_FAULTS:  # else they would take gigabytes
            fault += f"; {plain_line(validation_fault(error), bounds.LONGEST_FINDING)}"
        raise _ProtocolViolationError(fault) from None
