"""Messages between a trainer and a reward's process; tensors go through shared memory. Each is four
bytes of length, then JSON. The trainer trusts no answer: each is bounded and checked."""

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
_LENGTH = struct.Struct("!I")


class ArgumentPlace(Record):
    """Place of an argument's values in the shared memory: float32, row by row."""

    name: str
    shape: tuple[int, ...]
    offset: int
    """Bytes."""


class Load(Record):
    """First message to the process: the reward to load."""

    reward: RewardSpecification
    private: tuple[str, ...]
    arguments: tuple[ArgumentPlace, ...]
    """Every variable and `previous_<variable>`."""
    results: int
    """Offset of the total in bytes; the components follow, each of `rows` values."""
    rows: int
    """Steps of a call that the memory has room for."""
    constants: tuple[ConstantSpec, ...] = ()
    """Constants that the reward may name as arguments, beside the variables."""
    quaternion_order: QuaternionOrder = "wxyz"
    """Order in which the helper functions take quaternions."""


class Loaded(Record):
    """Answer: the source defines a reward."""

    type: Literal["loaded"] = "loaded"
    arguments: tuple[str, ...]


class Called(Record):
    """Answer: total and components are in the shared memory."""

    type: Literal["called"] = "called"
    components: tuple[Annotated[str, Field(max_length=LONGEST_NAME)], ...] = Field(
        max_length=MOST_COMPONENTS
    )


class Failed(Record):
    """Answer: the reward did not load, raised, or broke the contract."""

    type: Literal["failed"] = "failed"
    code: Literal["load", "raised", "contract"]
    message: str
    hint: str


Answer = Annotated[Loaded | Called | Failed, Field(discriminator="type")]
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


class NoAnswerError(Exception):
    """The other end is closed, or in a state from which no answer can come."""


def send(channel: socket.socket, message: bytes) -> None:
    """Write one message. Raises OSError where the other end is closed."""
    channel.sendall(_LENGTH.pack(len(message)) + message)


def send_call(channel: socket.socket, rows: int) -> None:
    """Ask for the reward of `rows` steps. Raises BlockingIOError where the buffer is full."""
    message = json.dumps(rows).encode()
    channel.send(_LENGTH.pack(len(message)) + message, socket.MSG_DONTWAIT)


def receive(
    channel: socket.socket, timeout_s: float | None = None, most: int | None = None
) -> bytes:
    """Read the next message by the deadline. Raises TimeoutError, NoAnswerError where the other end
    is closed, and ValueError for more than `most` bytes."""
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
        # BlockingIOError: an out-of-band byte, which is announced and cannot be read
        except (ConnectionError, BlockingIOError):
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
