"""Dry runs, each in a confined fork of the warm process, which starts in milliseconds."""

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
from dataclasses import dataclass

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from eureka_agent.errors import ProcessStartError
from eureka_agent.protocol.bounds import Findings
from eureka_agent.protocol.commands import DryRun
from eureka_agent.protocol.events import DryRunDone
from eureka_agent.records import Finding
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.worker.checks import check_reward
from eureka_agent.worker.confinement import confine_computation, describe_exit, warm_up
from eureka_agent.worker.limits import (
    EXTRA_DATA_BYTES,
    adopt_orphans,
    die_with,
    kill_strays,
    limit_generated_code,
)

_MAX_RESULT_BYTES = 1 << 18
_LINE_OF_TRACEBACK = re.compile(rb'File "<reward [0-9a-f]{12}>", line ([1-9][0-9]{0,5}) in ')
_FINDINGS: TypeAdapter[Findings] = TypeAdapter(Findings)


@dataclass(frozen=True)
class ChildEnd:
    """End of a forked child, and the bytes that it left."""

    data: bytes
    timed_out: bool
    status: int
    """Exit status, or the negative number of the signal that ended it."""


class DryRunner:
    """Runs rewards on states that were recorded once."""

    def __init__(
        self,
        recorded: Mapping[str, Tensor],
        environment_class: type[VecTask],
        protocol_descriptors: Sequence[int],
    ) -> None:
        """`protocol_descriptors` are closed in every child: a reward must not write events."""
        adopt_orphans()
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

        end = run_in_child(check, command.timeout_s, EXTRA_DATA_BYTES, self._protocol_descriptors)
        return DryRunDone(
            job=command.job,
            findings=tuple(read_findings(end, command.timeout_s)),
            seconds=time.monotonic() - begin,
        )


def run_in_child(
    work: Callable[[], bytes],
    timeout_s: float,
    extra_data_bytes: int,
    close_descriptors: Sequence[int],
) -> ChildEnd:
    """Run `work` in a confined fork, after `warm_up()`; return its bytes. The fork and all its
    children are killed after `timeout_s`. Raises ProcessStartError."""
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
            die_with(parent)
            os.close(reading)
            for descriptor in close_descriptors:
                os.close(descriptor)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.closerange(3, writing)  # everything else that the worker has open
            os.closerange(writing + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
            limit_generated_code(
                extra_bytes=extra_data_bytes, open_files=64, cpu_seconds=math.ceil(timeout_s) + 1
            )
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
        data, timed_out = _read_until_end(reading, time.monotonic() + timeout_s)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):  # the group begins with its setsid
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        kill_strays()
    return ChildEnd(data, timed_out, status)


def read_findings(end: ChildEnd, timeout_s: float) -> list[Finding]:
    """The child's findings, or one on how it ended."""
    if end.timed_out:
        message = f"did not end within {timeout_s:g} s: an endless loop, or far too much work"
        hint = "work on whole tensors, without loops that wait for a condition"
        return [_error("D310", message, hint)]
    try:
        return list(_FINDINGS.validate_json(end.data))
    except ValidationError:
        pass
    if end.status == -signal.SIGXCPU:
        message = f"used more than {timeout_s:g} s of CPU time"
        return [_error("D310", message, "work on whole tensors")]
    line = _LINE_OF_TRACEBACK.search(end.data)
    return [_error("D312", *describe_exit(end.status), int(line[1]) if line else None)]


def _read_until_end(descriptor: int, deadline: float) -> tuple[bytes, bool]:
    """Read up to `_MAX_RESULT_BYTES` until the end; the flag: past the deadline."""
    data = bytearray()
    while len(data) <= _MAX_RESULT_BYTES:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return bytes(data), True
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        data += part
    return bytes(data), False


def _error(code: str, message: str, hint: str, line: int | None = None) -> Finding:
    return Finding(code=code, severity="error", message=message, hint=hint, line=line)
