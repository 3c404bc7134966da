"""Dry runs, each in a confined fork of the warm process, and the states for them: transitions of
random actions."""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import math
import os
import re
import resource
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from eureka_agent.boundary.bounds import Findings
from eureka_agent.boundary.commands import DryRun
from eureka_agent.boundary.events import DryRunDone
from eureka_agent.errors import EnvironmentFaultError, ProcessStartError
from eureka_agent.records import Finding
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task, Variable
from eureka_agent.training import environment_faults
from eureka_agent.training.fitness import FitnessFunction
from eureka_agent.worker import limits
from eureka_agent.worker.checks import check_reward
from eureka_agent.worker.confinement import confine_computation, describe_exit, warm_up

RECORDED_ENVIRONMENTS = 8
RECORDED_STEPS = 40
REHEARSAL_SECONDS = 0.5
CALL_SECONDS = 30.0
"""Timeout of one step or reset of a few environments, on a busy machine."""
MOST_RESULT_BYTES = 1 << 18
_LINE_OF_TRACEBACK = re.compile(rb'File "<reward [0-9a-f]{12}>", line ([1-9][0-9]{0,5}) in ')
_FINDINGS: TypeAdapter[Findings] = TypeAdapter(Findings)


def record_transitions(
    environment: VecTask, variables: Sequence[Variable], seed: int = 0
) -> dict[str, Tensor]:
    """Record variables and `previous_` ones over `RECORDED_STEPS` random steps of, ideally,
    `RECORDED_ENVIRONMENTS` rows. One row is reset every five steps. Shape of each: (transitions,
    *variable.shape), float32 on the CPU. Raises EnvironmentFaultError for code that raises, hangs
    or breaks its declarations."""
    generator = torch.Generator().manual_seed(seed)
    with _one_call(environment, "a reset"):
        environment.reset()
        before = _checked(environment, environment.read_variables(), "right after a reset")
    recorded: dict[str, list[Tensor]] = {}
    for step in range(RECORDED_STEPS):
        with _one_call(environment, "a step"):
            after = _advance(environment, generator)
        for variable in variables:
            recorded.setdefault(variable.name, []).append(after[variable.name])
            recorded.setdefault(PREVIOUS_PREFIX + variable.name, []).append(before[variable.name])
        if step % 5 == 4:
            environment.reset_buf[(step // 5) % environment.num_envs] = True
        with _one_call(environment, "a reset"):
            environment.reset_done()
            before = _checked(environment, environment.read_variables(), "right after a reset")
    return {name: torch.cat(values) for name, values in recorded.items()}


def rehearse(environment: VecTask, task: Task | None, recorded: Mapping[str, Tensor]) -> None:
    """Try the task's own fitness, if any, on the recorded states, then step for an episode or
    `REHEARSAL_SECONDS`, to find late errors. Raises EnvironmentFaultError."""
    if task is not None:
        with environment_faults.environment_code(
            type(environment), CALL_SECONDS, "the task's fitness"
        ):
            function = FitnessFunction(task, environment.all_variables(), environment.constants)
            fitness = function(recorded)
        if not bool(fitness.isfinite().all()):
            raise environment_faults.fitness_fault(task)
    generator = torch.Generator().manual_seed(1)
    deadline = time.monotonic() + REHEARSAL_SECONDS
    for _ in range(environment.max_episode_length):
        if time.monotonic() >= deadline:
            return
        with _one_call(environment, "a step"):
            _advance(environment, generator)
            environment.reset_done()


def _one_call(environment: VecTask, doing: str) -> AbstractContextManager[None]:
    subject = f"{doing} of {environment.num_envs} environments"
    return environment_faults.environment_code(type(environment), CALL_SECONDS, subject)


def _advance(environment: VecTask, generator: torch.Generator) -> dict[str, Tensor]:
    drawn = torch.rand(environment.num_envs, environment.num_actions, generator=generator)
    actions = environment.actions_from(drawn)
    transition = environment.advance(actions.to(environment.device))
    return _checked(environment, transition.variables, "")


def _checked(environment: VecTask, values: Mapping[str, Tensor], moment: str) -> dict[str, Tensor]:
    """Copy the variables. Raises EnvironmentFaultError unless they are as declared and finite."""
    cls, rows = type(environment), environment.num_envs
    expected = {variable.name: (rows, *variable.shape) for variable in environment.all_variables()}
    expected[environment_faults.OBSERVATIONS] = (rows, environment.num_observations)
    given = {**values, environment_faults.OBSERVATIONS: environment.obs_buf}
    found = {name: tuple(value.shape) for name, value in given.items()}
    for name in (*expected, *found):
        if expected.get(name) != found.get(name):
            what = f"has the shape {found.get(name)}, expected {expected.get(name)}"
            if name not in expected:
                what = "is given, but not declared in the class's `variables`"
            elif name not in found:
                what = "is declared, but not given"
            place = environment_faults.place_of_value(cls, name)
            hint = "compute_variables gives exactly the declared variables; the batch comes first"
            raise EnvironmentFaultError(f"{place}{name!r} {what}", hint)

    def when(row: int) -> str:
        step = int(environment.progress_buf[row])
        return moment or f"in step {step} of an episode of random actions"

    environment_faults.check_rows(cls, given, when, environment.actions)
    return {name: it.detach().to("cpu", torch.float32, copy=True) for name, it in values.items()}


@dataclass(frozen=True)
class ChildEnd:
    data: bytes
    timed_out: bool
    status: int
    """Exit status, or the negative number of the signal that ended it."""


class ForkedDryRuns:
    """Runs rewards on states that were recorded once."""

    def __init__(
        self,
        recorded: Mapping[str, Tensor],
        environment_class: type[VecTask],
        protocol_descriptors: Sequence[int],
    ) -> None:
        """`protocol_descriptors` are closed in every child: a reward must not write events."""
        limits.adopt_orphans()
        warm_up()
        self._recorded = recorded
        self._environment_class = environment_class
        self._protocol_descriptors = protocol_descriptors

    def run(self, command: DryRun) -> DryRunDone:
        """Fork, check, wait with a wall clock, and leave no process behind."""
        begin = time.monotonic()

        def check() -> bytes:
            found = check_reward(command.reward, self._recorded, self._environment_class)
            return _FINDINGS.dump_json(tuple(found))

        end = run_in_child(check, command.timeout_s, self._protocol_descriptors)
        findings = _read_findings(end, command.timeout_s)
        seconds = time.monotonic() - begin
        return DryRunDone(job=command.job, findings=findings, seconds=seconds)


def run_in_child(
    work: Callable[[], bytes],
    timeout_s: float,
    close_descriptors: Sequence[int],
    most_bytes: int = MOST_RESULT_BYTES,
) -> ChildEnd:
    """Run `work` in a confined fork, after `warm_up()`; return its first bytes. The fork and all
    its children are killed after `timeout_s`. Raises ProcessStartError."""
    reading, writing = os.pipe()
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        os.close(reading)
        os.close(writing)
        raise ProcessStartError(error.errno or errno.EAGAIN) from None
    if child == 0:
        status = 1
        try:
            os.setsid()
            limits.die_with(parent)
            os.close(reading)
            for descriptor in close_descriptors:
                os.close(descriptor)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.closerange(3, writing)  # everything else that the worker has open
            os.closerange(writing + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
            limits.limit_generated_code(open_files=64, cpu_seconds=math.ceil(timeout_s) + 1)
            torch.manual_seed(0)
            # its traceback has the reward's line
            faulthandler.register(signal.SIGSYS, writing, all_threads=False, chain=True)
            confine_computation()
            unwritten = memoryview(work())
            while unwritten:
                unwritten = unwritten[os.write(writing, unwritten) :]
            status = 0
        finally:  # never return into the worker's code
            os._exit(status)
    os.close(writing)
    try:
        deadline = time.monotonic() + timeout_s
        data, timed_out = _read_until_end(reading, deadline, most_bytes)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):  # the group begins with its setsid
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        limits.kill_strays()
    return ChildEnd(data, timed_out, status)


def _read_findings(end: ChildEnd, timeout_s: float) -> tuple[Finding, ...]:
    code, line = "D310", 0
    if end.timed_out:
        message = f"did not end within {timeout_s:g} s: an endless loop, or far too much work"
        hint = "work on whole tensors, without loops that wait for a condition"
    else:
        with contextlib.suppress(ValidationError):
            return _FINDINGS.validate_json(end.data)
        message, hint = f"used more than {timeout_s:g} s of CPU time", "work on whole tensors"
        if end.status != -signal.SIGXCPU:
            code, (message, hint) = "D312", describe_exit(end.status)
            found = _LINE_OF_TRACEBACK.search(end.data)
            line = int(found[1]) if found else 0
    return (Finding(code=code, severity="error", message=message, hint=hint, line=line or None),)


def _read_until_end(descriptor: int, deadline: float, most_bytes: int) -> tuple[bytes, bool]:
    """Read up to `most_bytes` until the end; the flag: past the deadline."""
    data = bytearray()
    while len(data) <= most_bytes:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return bytes(data), True
        if not (part := os.read(descriptor, 1 << 16)):
            break
        data += part
    return bytes(data), False
