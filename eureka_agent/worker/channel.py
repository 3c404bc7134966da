"""The worker's end of the protocol: commands by line in, events by line out, files in between."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from eureka_agent.errors import EurekaError
from eureka_agent.protocol.bounds import MAX_LINE_BYTES, FileHeader
from eureka_agent.protocol.commands import COMMAND, Command
from eureka_agent.protocol.events import Event

_READ_BYTES = 1 << 16


class ProtocolError(EurekaError):
    """A line that is no command."""


@dataclass(frozen=True)
class File:
    """A file for the driver, sent before the event that names it."""

    name: str
    content: bytes


@dataclass
class _Incoming:
    file: BinaryIO
    missing: int


class Channel:
    """JSON lines and files over two file descriptors, without threads, and without waiting."""

    def __init__(self, input_descriptor: int, output_descriptor: int, folder: Path) -> None:
        """`folder`: where received files are written under their names."""
        self._input = input_descriptor
        self._output = output_descriptor
        self._folder = folder
        self._buffer = bytearray()
        self._skipping = False
        self._incoming: _Incoming | None = None
        self.closed = False
        """True once the driver closed its end."""

    def receive(self, timeout_s: float | None) -> Command | None:
        """Return the next command, with its files stored; None after `timeout_s` (0: look only) or
        at the end of input. Raises ProtocolError for a line that is too long or no command, after
        which reading goes on, and OSError where a file cannot be written."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._take_content()
            line = None if self._incoming is not None else self._take_line()
            if line is not None:
                command = _parse(line)
                if not isinstance(command, FileHeader):
                    return command
                self._incoming = _Incoming((self._folder / command.name).open("wb"), command.size)
                continue
            if self.closed:
                return None
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._input], [], [], remaining)[0]:
                return None
            data = os.read(self._input, _READ_BYTES)
            self.closed = not data
            self._buffer += data

    def send(self, event: Event) -> None:
        """Write one event. Raises OSError when the driver is gone."""
        self._write([event.model_dump_json().encode(), b"\n"])

    def send_file(self, file: File) -> None:
        """Write a file. Raises OSError when the driver is gone."""
        header = FileHeader(name=file.name, size=len(file.content))
        self._write([header.model_dump_json().encode(), b"\n", file.content])

    def descriptors(self) -> tuple[int, int]:
        """Both file descriptors, for a fork that must not hold them."""
        return self._input, self._output

    def _write(self, parts: Sequence[bytes]) -> None:
        for part in parts:
            data = memoryview(part)
            while data:
                data = data[os.write(self._output, data) :]

    def _take_content(self) -> None:
        """Move the buffer's part of an incoming file to that file."""
        incoming = self._incoming
        if incoming is None:
            return
        part = self._buffer[: incoming.missing]
        incoming.file.write(part)
        del self._buffer[: len(part)]
        incoming.missing -= len(part)
        if not incoming.missing:
            incoming.file.close()
            self._incoming = None

    def _take_line(self) -> bytes | None:
        """Take a complete line without its end. Raises ProtocolError for one too long."""
        while True:
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > MAX_LINE_BYTES:
                    self._buffer.clear()
                    if not self._skipping:
                        self._skipping = True
                        raise _too_long()
                return None
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if self._skipping:  # the rest of a line that was too long
                self._skipping = False
                continue
            if len(line) > MAX_LINE_BYTES:
                raise _too_long()
            return line


def _too_long() -> ProtocolError:
    return ProtocolError(
        f"a command is longer than {MAX_LINE_BYTES} bytes", "send what is large as a file"
    )


def _parse(line: bytes) -> Command:
    try:
        return COMMAND.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise ProtocolError(
            f"not a command: {line[:80]!r}: {where}: {first['msg']}", "see protocol/commands.py"
        ) from None
