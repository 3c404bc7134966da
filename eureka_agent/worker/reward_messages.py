"""What passes between a trainer and the process of one reward: short JSON messages over a socket,
tensors through shared memory.

A message is four bytes of length, then JSON. The trainer believes nothing of what comes back: it is
bounded, parsed and checked, and a reward that writes nonsense here has failed.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from eureka_agent.component_names import LONGEST_NAME, MOST_COMPONENTS
from eureka_agent.records import ConstantSpec, Record
from eureka_agent.rewards import RewardSpecification
from eureka_agent.task import QuaternionOrder

MAX_MESSAGE_BYTES = 1 << 16
"""Of what a reward's process may answer."""
_LENGTH = struct.Struct("!I")


class ArgumentPlace(Record):
    """Where an argument's values lie in the shared memory: float32, row by row."""

    name: str
    shape: tuple[int, ...]
    """Of one row."""
    offset: int
    """In bytes."""


class Load(Record):
    """First message to the process: what it is to run."""

    reward: RewardSpecification
    private: tuple[str, ...]
    """Names of the private variables."""
    arguments: tuple[ArgumentPlace, ...]
    """Every variable and `previous_<variable>`."""
    results: int
    """Offset in bytes of the total, which the components follow, each with a row for every step
    that there is room for."""
    rows: int
    """Steps that there is room for."""
    constants: tuple[ConstantSpec, ...] = ()
    """That may be named as arguments, beside the variables."""
    quaternion_order: QuaternionOrder = "wxyz"
    """Order in which the helper functions take quaternions."""


class Loaded(Record):
    """The source defines a reward."""

    type: Literal["loaded"] = "loaded"
    arguments: tuple[str, ...]


class Called(Record):
    """Total and components are in the shared memory."""

    type: Literal["called"] = "called"
    components: tuple[Annotated[str, Field(max_length=LONGEST_NAME)], ...] = Field(
        max_length=MOST_COMPONENTS
    )


class Failed(Record):
    """The reward could not be loaded, raised, or returned what the contract forbids."""

    type: Literal["failed"] = "failed"
    code: Literal["load", "raised", "contract"]
    message: str
    hint: str


Answer = Annotated[Loaded | Called | Failed, Field(discriminator="type")]
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


class NoAnswerError(Exception):
    """The other end is closed, or in a state from which no answer can come."""


def send(channel: socket.socket, message: bytes) -> None:
    """Write one message. Raises OSError where nobody reads any more."""
    channel.sendall(_LENGTH.pack(len(message)) + message)


def send_call(channel: socket.socket, rows: int) -> None:
    """Ask for the reward of so many steps, whose values are in the shared memory. Never waits:
    raises BlockingIOError where nothing was read for long."""
    message = json.dumps(rows).encode()
    channel.send(_LENGTH.pack(len(message)) + message, socket.MSG_DONTWAIT)


def receive(
    channel: socket.socket, timeout_s: float | None = None, most: int | None = None
) -> bytes:
    """The next message. With a timeout nothing that the other end does makes this wait longer.

    Raises TimeoutError, NoAnswerError at the end, and ValueError for a message of more than `most`
    bytes.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, deadline))
    if most is not None and length > most:
        raise ValueError(f"a message of {length} bytes, expected at most {most}")
    return _exactly(channel, length, deadline)


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            if deadline is None:
                part = channel.recv(size - len(data))
            else:
                _wait_for_bytes(channel, deadline)
                part = channel.recv(size - len(data), socket.MSG_DONTWAIT)
        except (
            ConnectionError,
            BlockingIOError,
        ):  # the latter: a byte out of band, which is announced and cannot be read
            part = b""
        if not part:
            raise NoAnswerError("the other end is closed")
        data += part
    return bytes(data)


def _wait_for_bytes(channel: socket.socket, deadline: float) -> None:
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError
