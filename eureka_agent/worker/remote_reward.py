"""A reward in a process of its own, called by its trainer."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.arguments import variable_of
from eureka_agent.errors import RewardLoadError
from eureka_agent.records import ConstantSpec
from eureka_agent.reward_names import MOST_COMPONENTS, component_fault
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.user_modules import TimeLimitError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Constant, QuaternionOrder, Variable
from eureka_agent.training.observation import DesignedObservation, ObservationError
from eureka_agent.training.reward import RewardContractError
from eureka_agent.worker import reward_process
from eureka_agent.worker.confinement import describe_exit
from eureka_agent.worker.nursery import Nursery

LOADING_SECONDS = 5.0
_ALIGNMENT = 64
_FLOAT_BYTES = 4


class RemoteReward:
    """Counterpart of `training.reward.RewardFunction`, without its code in this process."""

    def __init__(
        self,
        nursery: Nursery,
        reward: RewardSpecification,
        variables: Sequence[Variable],
        rows: int,
        *,
        constants: Sequence[Constant] = (),
        quaternion_order: QuaternionOrder = "wxyz",
    ) -> None:
        """Start its process and load the reward there. `rows`: expected steps of a call. Raises
        RewardLoadError as `load_reward`, TimeLimitError after `LOADING_SECONDS`, ProcessStartError
        without room for it."""
        self._nursery = nursery
        self._reward = reward
        self._variables = tuple(variables)
        specified = (ConstantSpec.model_validate(each, from_attributes=True) for each in constants)
        self._constants = tuple(specified)
        self._quaternion_order = quaternion_order
        self._process = self._start(rows)
        self.observation: DesignedObservation | None = None
        """Observation that its source designs for the policy; None: the environment's own."""
        self.arguments = self._load(self._process)
        """Variable names and `previous_<variable>`, in the function's order."""
        self._allowed = frozenset(self.arguments)

    @classmethod
    def on(
        cls, environment: type[VecTask], nursery: Nursery, reward: RewardSpecification, rows: int
    ) -> RemoteReward:
        """A reward with the variables and constants of an environment."""
        constants, order = environment.constants, environment.quaternion_order
        given = nursery, reward, environment.all_variables(), rows
        return cls(*given, constants=constants, quaternion_order=order)

    def begin(
        self, values: Mapping[str, Tensor], timeout_s: float
    ) -> Callable[[], tuple[Tensor, dict[str, Tensor]]]:
        """Start the calculation; the returned function waits for total and components, float32 of
        shape (batch,) on their device. Shape of each value: (batch, *variable.shape). The wait
        raises RewardContractError, also for a process that ended, and TimeLimitError."""
        first = values[self.arguments[0]]
        rows = len(first)
        if rows > self._process.load.rows:
            self._restart(rows)
        process = self._process
        for place in process.load.arguments:
            if place.name in self._allowed:
                shape = (rows, *place.shape)
                process.memory.at(place.offset, shape).copy_(values[place.name])
        try:
            reward_process.send_call(process.channel, rows)
        except BlockingIOError:  # it never reads: a wait would hold up its neighbours
            process.close()
        except OSError:  # it has ended, which the wait reports
            pass
        return lambda: self._result(process, rows, first.device, timeout_s)

    def close(self) -> None:
        """End its process; a second call does nothing."""
        self._process.close()

    def _result(
        self, process: _Process, rows: int, device: torch.device, timeout_s: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        answer = self._answer(process, timeout_s)
        if answer.code in ("raised", "contract"):
            raise RewardContractError(answer.code, answer.message, answer.hint)
        if answer.code != "called" or len(answer.names) > MOST_COMPONENTS:
            raise _invalid_answer()
        for name in answer.names:
            if fault := component_fault(name):
                raise RewardContractError("contract", *fault)
        stride = _FLOAT_BYTES * process.load.rows
        places = (process.load.results + stride * index for index in range(1 + len(answer.names)))
        results = [process.memory.at(place, (rows,)).to(device, copy=True) for place in places]
        return results[0], dict(zip(answer.names, results[1:], strict=True))

    def _answer(self, process: _Process, timeout_s: float) -> reward_process.Answer:
        """Wait for an answer. Ends the process at RewardContractError and TimeLimitError."""
        try:
            if process.status is not None:
                raise reward_process.NoAnswerError
            most = reward_process.MAX_MESSAGE_BYTES
            message = reward_process.receive(process.channel, timeout_s, most)
            return reward_process.Answer.model_validate_json(message)
        except TimeoutError:
            process.close()
            raise TimeLimitError(timeout_s) from None
        except reward_process.NoAnswerError:
            raise RewardContractError("raised", *describe_exit(process.close())) from None
        except ValueError:
            process.close()
            raise _invalid_answer() from None

    def _restart(self, rows: int) -> None:
        """Replace the process by one with room for more steps, which has no state of the old."""
        self._process.close()
        self._process = self._start(rows)
        if frozenset(self._load(self._process)) != self._allowed:
            raise _invalid_answer()

    def _load(self, process: _Process) -> tuple[str, ...]:
        try:
            answer = self._answer(process, LOADING_SECONDS)
        except RewardContractError as error:
            raise RewardLoadError(error.message, error.hint) from None
        if answer.code == "load":
            process.close()
            raise RewardLoadError(answer.message, answer.hint)
        names = answer.names if answer.code == "loaded" else ()
        trusted = self._reward.trusted
        known = {each.name for each in self._variables if trusted or not each.private}
        are_known = all(variable_of(name) in known for name in names)
        if names and len(set(names)) == len(names) and are_known:
            if answer.observation is None or self.observation is not None:
                return names
            shapes = {each.name: each.shape for each in self._variables if not each.private}
            with contextlib.suppress(ObservationError):
                self.observation = DesignedObservation(answer.observation, shapes)
                return names
        process.close()
        raise RewardLoadError(_invalid_answer().message, "compute with torch alone")

    def _start(self, rows: int) -> _Process:
        places, end = [], 0
        for variable in self._variables:
            for name in (variable.name, PREVIOUS_PREFIX + variable.name):
                own = {"shape": variable.shape, "private": variable.private}
                places.append(reward_process.ArgumentPlace(name=name, offset=end, **own))
                end += _FLOAT_BYTES * rows * math.prod(variable.shape)
                end += -end % _ALIGNMENT
        load = reward_process.Load(
            reward=self._reward,
            arguments=tuple(places),
            results=end,
            rows=rows,
            constants=self._constants,
            quaternion_order=self._quaternion_order,
        )
        # untouched pages take no memory
        size = end + _FLOAT_BYTES * rows * (1 + MOST_COMPONENTS)
        return _Process.start(self._nursery, load, size)


@dataclass
class _Process:
    nursery: Nursery
    pid: int
    channel: socket.socket
    memory: reward_process.SharedTensors
    load: reward_process.Load
    status: int | None = None

    @classmethod
    def start(cls, nursery: Nursery, load: reward_process.Load, size: int) -> _Process:
        ours, theirs = socket.socketpair()
        descriptor = _shared_memory(size)
        try:
            pid = nursery.fork(theirs, descriptor, size)
            memory = reward_process.SharedTensors(mmap.mmap(descriptor, size))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(descriptor)
        process = cls(nursery, pid, ours, memory, load)
        ours.settimeout(LOADING_SECONDS)
        with contextlib.suppress(OSError):  # it has ended or does not read, which the wait reports
            reward_process.send(ours, load.model_dump_json().encode())
        ours.setblocking(False)  # the other end cannot change that
        return process

    def close(self) -> int:
        """End it. Returns its exit status, or minus the number of the signal that ended it."""
        if self.status is None:
            self.channel.close()
            self.status = self.nursery.end(self.pid)
        return self.status


def _shared_memory(size: int) -> int:
    """A descriptor of memory that two processes can share."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("reward")
    else:  # macOS
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, size)
    return descriptor


def _invalid_answer() -> RewardContractError:
    message = "the process that ran it gave no answer that can be read"
    return RewardContractError("contract", message, "compute with torch alone")
