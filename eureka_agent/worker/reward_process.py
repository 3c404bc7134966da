"""The process of one reward: it loads a source and calls it on values in shared memory."""

from __future__ import annotations

import json
import mmap
import socket
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from eureka_agent.errors import EurekaError, RewardLoadError
from eureka_agent.task import PREVIOUS_PREFIX, Constant, Variable
from eureka_agent.training.reward import RewardContractError, RewardFunction
from eureka_agent.training.reward_loading import load_reward
from eureka_agent.worker.reward_messages import (
    Answer,
    ArgumentPlace,
    Called,
    Failed,
    Load,
    Loaded,
    receive,
    send,
)

_LONGEST_WORDS = 2000
"""Characters of a message or hint; each takes at most twelve bytes of an answer."""


def serve_reward(channel: socket.socket, memory: SharedTensors, load: Load) -> None:
    """Load the reward, which runs generated code, then answer calls. Raises NoAnswerError."""
    reward = _loaded(load)
    if isinstance(reward, Failed):
        _answer(channel, reward)
        return
    places = {place.name: place for place in load.arguments}
    used = [places[name] for name in reward.arguments]
    _answer(channel, Loaded(arguments=reward.arguments))
    while True:
        rows = json.loads(receive(channel))
        _answer(channel, _call(reward, memory, load, used, rows))


def _loaded(load: Load) -> RewardFunction | Failed:
    variables = [
        Variable(place.name, place.shape, "1", "-", "", private=place.name in load.private)
        for place in load.arguments
        if not place.name.startswith(PREVIOUS_PREFIX)
    ]
    try:
        return load_reward(
            load.reward,
            variables,
            constants=[Constant(constant.name, constant.value) for constant in load.constants],
            quaternion_order=load.quaternion_order,
        )
    except RewardLoadError as error:
        return _failed("load", error)


def _call(
    reward: RewardFunction,
    memory: SharedTensors,
    load: Load,
    used: Sequence[ArgumentPlace],
    rows: int,
) -> Called | Failed:
    values = {place.name: memory.at(place.offset, (rows, *place.shape)) for place in used}
    try:
        total, components = reward(values)
    except RewardContractError as error:
        return _failed("contract" if error.code == "contract" else "raised", error)
    for index, result in enumerate((total, *components.values())):
        memory.at(load.results + 4 * load.rows * index, (rows,)).copy_(result)
    return Called(components=tuple(components))


def _failed(code: Literal["load", "raised", "contract"], error: EurekaError) -> Failed:
    """Bounded answer for an error, whose message may hold whole tensors."""
    return Failed(
        code=code, message=error.message[:_LONGEST_WORDS], hint=error.hint[:_LONGEST_WORDS]
    )


class SharedTensors:
    """float32 tensors in memory that trainer and process share."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._made: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def at(self, offset: int, shape: tuple[int, ...]) -> Tensor:
        """The tensor that begins at `offset` bytes, cached: most calls have the same shape."""
        tensor = self._made.get((offset, shape))
        if tensor is None:
            size = torch.Size(shape).numel()
            tensor = torch.frombuffer(
                self._memory, dtype=torch.float32, count=size, offset=offset
            ).view(shape)
            self._made[offset, shape] = tensor
        return tensor


def _answer(channel: socket.socket, answer: Answer) -> None:
    send(channel, answer.model_dump_json().encode())
