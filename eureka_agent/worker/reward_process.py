"""A reward's process: the messages between it and its trainer, and its loop on values in shared
memory. A message is four bytes of length, then JSON. The trainer trusts no answer: each is bounded
and checked."""

from __future__ import annotations

import json
import mmap
import select
import socket
import struct
import time
from typing import Literal

import torch
from torch import Tensor

from eureka_agent.errors import EurekaError, RewardLoadError
from eureka_agent.records import ConstantSpec, Record
from eureka_agent.rewards import RewardSpecification
from eureka_agent.task import PREVIOUS_PREFIX, Constant, QuaternionOrder, Variable
from eureka_agent.training.observation import ObservationProgram
from eureka_agent.training.reward import RewardContractError, RewardFunction

MAX_MESSAGE_BYTES = 1 << 16
_LENGTH = struct.Struct("!I")
_LONGEST_WORDS = 2000
"""Characters of a message or hint; each takes at most twelve bytes of an answer."""


class ArgumentPlace(Record):
    """Place of an argument's values in the shared memory: float32, row by row."""

    name: str
    shape: tuple[int, ...]
    offset: int
    """Bytes."""
    private: bool


class Load(Record):
    """First message to the process: the reward to load."""

    reward: RewardSpecification
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


class Answer(Record):
    """Answer of the process: the source is loaded, a call is made, or either has failed."""

    code: Literal["loaded", "called", "load", "raised", "contract"]
    names: tuple[str, ...] = ()
    """The reward's arguments, or its components, whose values follow the total."""
    observation: ObservationProgram | None = None
    """Observation that a loaded source designs."""
    message: str = ""
    hint: str = ""


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
    """Read a message. Raises TimeoutError, NoAnswerError, ValueError beyond `most` bytes."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, deadline))
    if most is not None and length > most:
        raise ValueError(f"a message of {length} bytes, expected at most {most}")
    return _exactly(channel, length, deadline)


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    data = bytearray()
    while len(data) < size:
        try:
            if deadline is None:
                part = channel.recv(size - len(data))
            elif waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
                part = channel.recv(size - len(data), socket.MSG_DONTWAIT)
            else:
                raise TimeoutError
        # BlockingIOError: an out-of-band byte, which is announced and cannot be read
        except (ConnectionError, BlockingIOError):
            part = b""
        if not part:
            raise NoAnswerError("the other end is closed")
        data += part
    return bytes(data)


def serve_reward(channel: socket.socket, memory: SharedTensors, load: Load) -> None:
    """Load the reward, which runs generated code, then answer calls. Raises NoAnswerError."""
    places = (each for each in load.arguments if not each.name.startswith(PREVIOUS_PREFIX))
    variables = [Variable(it.name, it.shape, "1", "-", "", private=it.private) for it in places]
    try:
        reward = RewardFunction.from_source(
            load.reward.source,
            variables,
            load.reward.trusted,
            constants=[Constant(constant.name, constant.value) for constant in load.constants],
            quaternion_order=load.quaternion_order,
        )
    except RewardLoadError as error:
        _answer(channel, _failed("load", error))
        return
    used = [place for place in load.arguments if place.name in reward.arguments]
    program = None if reward.observation is None else reward.observation.program
    _answer(channel, Answer(code="loaded", names=reward.arguments, observation=program))
    while True:
        rows = json.loads(receive(channel))
        values = {place.name: memory.at(place.offset, (rows, *place.shape)) for place in used}
        try:
            total, components = reward(values)
        except RewardContractError as error:
            is_contract = error.code == "contract"
            _answer(channel, _failed("contract" if is_contract else "raised", error))
            continue
        for index, result in enumerate((total, *components.values())):
            memory.at(load.results + 4 * load.rows * index, (rows,)).copy_(result)
        _answer(channel, Answer(code="called", names=tuple(components)))


def _failed(code: Literal["load", "raised", "contract"], error: EurekaError) -> Answer:
    """Bounded answer for an error, whose message may hold whole tensors."""
    message, hint = error.message[:_LONGEST_WORDS], error.hint[:_LONGEST_WORDS]
    return Answer(code=code, message=message, hint=hint)


def _answer(channel: socket.socket, answer: Answer) -> None:
    send(channel, answer.model_dump_json().encode())


class SharedTensors:
    """float32 tensors in memory that trainer and process share."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._made: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def at(self, offset: int, shape: tuple[int, ...]) -> Tensor:
        """The tensor that begins at `offset` bytes, cached: most calls have the same shape."""
        if (offset, shape) not in self._made:
            size = torch.Size(shape).numel()
            flat = torch.frombuffer(self._memory, dtype=torch.float32, count=size, offset=offset)
            self._made[offset, shape] = flat.view(shape)
        return self._made[offset, shape]
