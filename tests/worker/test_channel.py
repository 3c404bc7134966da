"""The worker's end of the protocol, over real pipes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from eureka_agent.boundary.bounds import FileHeader
from eureka_agent.boundary.commands import Cancel, Shutdown
from eureka_agent.boundary.events import EVENT, Fault, Opened
from eureka_agent.records import TaskDescription
from eureka_agent.worker.channel import DriverChannel, File, ProtocolError

CANCEL = b'{"type": "cancel", "job": "a"}\n'


class Pipes:
    def __init__(self, folder: Path) -> None:
        commands, self.driver_writes = os.pipe()
        self.driver_reads, events = os.pipe()
        self.folder = folder
        self.channel = DriverChannel(commands, events, folder)
        self._open = {commands, self.driver_writes, self.driver_reads, events}

    def write(self, data: bytes) -> None:
        assert os.write(self.driver_writes, data) == len(data)

    def hang_up(self) -> None:
        os.close(self.driver_writes)
        self._open.discard(self.driver_writes)

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    pipes = Pipes(tmp_path)
    yield pipes
    pipes.close()


def test_lines_that_come_in_pieces_or_together_are_commands(pipes: Pipes) -> None:
    pipes.write(CANCEL[:10])
    assert pipes.channel.receive(0.0) is None
    pipes.write(CANCEL[10:] + b'{"type": "shutdown"}\n{"type"')
    assert pipes.channel.receive(0.0) == Cancel(job="a")
    assert pipes.channel.receive(0.0) == Shutdown()
    assert pipes.channel.receive(0.0) is None
    assert not pipes.channel.closed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"garbage\n", "garbage"),
        (b"\xff\xfe\x00\n", "not a command"),
        (b'{"type": "explode"}\n', "explode"),
        (b'{"type": "cancel", "job": "a", "extra": 1}\n', "extra"),
        (b"[" * 10_000 + b"\n", "not a command"),
    ],
)
@pytest.mark.usefixtures("no_collection")
def test_a_line_that_is_no_command_is_named_and_the_next_one_is_read(
    pipes: Pipes, line: bytes, said: str
) -> None:
    pipes.write(line + CANCEL)
    with pytest.raises(ProtocolError) as caught:
        pipes.channel.receive(0.0)
    assert said in caught.value.message
    assert pipes.channel.receive(0.0) == Cancel(job="a")


def test_the_end_of_input_is_seen_after_the_last_command(pipes: Pipes) -> None:
    pipes.write(CANCEL)
    pipes.hang_up()
    assert pipes.channel.receive(None) == Cancel(job="a")
    assert pipes.channel.receive(None) is None
    assert pipes.channel.closed


@pytest.mark.parametrize("number", ["-Infinity", "NaN", "1e999"])
def test_a_number_of_a_workers_is_finite(description: TaskDescription, number: str) -> None:
    """JSON as Python reads it has words for others."""
    opened = Opened(description=description).model_dump_json()
    dry_run = '{"type":"dry_run_done","job":"a","findings":[],"seconds":0.5}'
    progress = '{"type":"progress","points":{},"timers":{"physics":0.5}}'
    places = [
        (opened, '"control_dt":', "0.02"),
        (opened, '"range":[-1.0,', "1.0"),
        (dry_run, '"seconds":', "0.5"),
        (progress, '"physics":', "0.5"),
    ]
    for line, place, finite in places:
        EVENT.validate_json(line)
        assert place + finite in line
        with pytest.raises(ValidationError):
            EVENT.validate_json(line.replace(place + finite, place + number))


def header(name: str, size: int) -> bytes:
    return FileHeader(name=name, size=size).model_dump_json().encode() + b"\n"


def test_a_file_is_in_the_folder_when_the_command_behind_it_comes(pipes: Pipes) -> None:
    content = bytes(range(256)) * 2 + CANCEL  # newlines and commands among its bytes are its own
    data = header("state", len(content)) + content + header("empty", 0) + CANCEL
    for begin in range(0, len(data), 100):
        assert pipes.channel.receive(0.0) is None
        pipes.write(data[begin : begin + 100])
    assert pipes.channel.receive(0.0) == Cancel(job="a")
    assert (pipes.folder / "state").read_bytes() == content
    assert (pipes.folder / "empty").read_bytes() == b""
    assert pipes.channel.receive(0.0) is None


def test_a_file_named_by_a_path_is_no_command(pipes: Pipes) -> None:
    pipes.write(b'{"type": "file", "name": "../a", "size": 1}\n' + CANCEL)
    with pytest.raises(ProtocolError, match="name"):
        pipes.channel.receive(0.0)
    assert pipes.channel.receive(0.0) == Cancel(job="a")


def test_a_file_goes_out_behind_its_header(pipes: Pipes) -> None:
    pipes.channel.send(File("policy-1", b"12\n45"))
    pipes.channel.send(Fault(job=None, message="x"))
    line, rest = os.read(pipes.driver_reads, 1 << 16).split(b"\n", 1)
    assert EVENT.validate_json(line) == FileHeader(name="policy-1", size=5)
    assert rest[:5] == b"12\n45"
    assert isinstance(EVENT.validate_json(rest[5:]), Fault)
