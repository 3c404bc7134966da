"""The worker's end of the protocol: commands by line in, events by line out, files in between. The
driver is trusted, so no length is checked here."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from eureka_agent.boundary.bounds import FileHeader
from eureka_agent.boundary.commands import COMMAND, Command
from eureka_agent.boundary.events import Event
from eureka_agent.errors import EurekaError

_READ_BYTES = 1 << 16


class ProtocolError(EurekaError):
    """A line that is no command."""


@dataclass(frozen=True)
class File:
    """A file for the driver, sent before the event that names it."""

    name: str
    content: bytes


class DriverChannel:
    """JSON lines and files over two file descriptors, without threads, and without waiting."""

    def __init__(self, input_descriptor: int, output_descriptor: int, folder: Path) -> None:
        """`folder`: where received files are written under their names."""
        self._input = input_descriptor
        self._output = output_descriptor
        self._folder = folder
        self._buffer = bytearray()
        self._incoming: tuple[BinaryIO, int] | None = None
        """A file that is being received, and its bytes that are missing."""
        self.closed = False
        """True once the driver closed its end."""

    def receive(self, timeout_s: float | None) -> Command | None:
        """Return the next command, with its files stored; None after `timeout_s` (0: look only) or
        at the end of input. Raises ProtocolError for a line that is no command, after which reading
        goes on, and OSError where a file cannot be written."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._take_content()
            line = self._take_line() if self._incoming is None else None
            if line is not None:
                command = _parse(line)
                if not isinstance(command, FileHeader):
                    return command
                self._incoming = (self._folder / command.name).open("wb"), command.size
                continue
            if self.closed:
                return None
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._input], [], [], remaining)[0]:
                return None
            data = os.read(self._input, _READ_BYTES)
            self.closed = not data
            self._buffer += data

    def send(self, answer: Event | File) -> None:
        """Write one event or file. Raises OSError when the driver is gone."""
        content = b""
        if isinstance(answer, File):
            content = answer.content
            answer = FileHeader(name=answer.name, size=len(content))
        for part in (answer.model_dump_json().encode() + b"\n", content):
            data = memoryview(part)
            while data:
                data = data[os.write(self._output, data) :]

    def descriptors(self) -> tuple[int, int]:
        """Both file descriptors, for a fork that must not hold them."""
        return self._input, self._output

    def _take_content(self) -> None:
        if self._incoming is not None:
            file, missing = self._incoming
            part = self._buffer[:missing]
            file.write(part)
            del self._buffer[: len(part)]
            self._incoming = file, missing - len(part)
            if len(part) == missing:
                file.close()
                self._incoming = None

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def _parse(line: bytes) -> Command:
    try:
        return COMMAND.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        what = f"not a command: {line[:80]!r}: {where}: {first['msg']}"
        raise ProtocolError(what, "see protocol/commands.py") from None
