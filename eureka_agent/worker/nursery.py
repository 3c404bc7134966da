"""The nursery, from which rewards' processes are forked: it has torch, and no secret of a run. A
fork of the trainer could read other rewards' memory; a new process imports torch for seconds. So
the worker forks the nursery before it knows an environment or reward."""

from __future__ import annotations

import contextlib
import errno
import functools
import mmap
import os
import signal
import socket
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eureka_agent.errors import ProcessStartError, WorkerDiedError
from eureka_agent.worker import reward_process
from eureka_agent.worker.confinement import confine_computation, warm_up
from eureka_agent.worker.limits import die_with, limit_generated_code, spare

_MOST_DESCRIPTORS = 1 << 16
_CHANNEL = 3
"""Descriptor of a reward's socket to its trainer."""
_NUMBER = struct.Struct("!q")


@dataclass
class Nursery:
    """The worker's end; see `start`."""

    _pid: int
    _control: socket.socket

    @classmethod
    def start(cls, close_descriptors: Sequence[int]) -> Nursery:
        """Fork the nursery. `close_descriptors`: the protocol's, which no reward may have."""
        ours, theirs = socket.socketpair()
        worker = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run_and_exit(lambda: _serve(worker, ours, theirs, close_descriptors))
        theirs.close()
        spare(pid)
        return cls(pid, ours)

    def fork(self, channel: socket.socket, memory: int, size: int) -> int:
        """Start a process with `channel` and `memory`, a descriptor of `size` shared bytes; return
        its id. Raises ProcessStartError without room, WorkerDiedError after the nursery's end."""
        with self._named_end():
            socket.send_fds(self._control, [_NUMBER.pack(size)], [channel.fileno(), memory])
            answer = self._number()
        if answer < 0:
            raise ProcessStartError(-answer)
        return answer

    def end(self, pid: int) -> int:
        """Kill a reward's process. Returns its exit status, or minus the signal that ended it."""
        with self._named_end():
            self._control.sendall(_NUMBER.pack(-pid))
            return self._number()

    def close(self) -> None:
        """End the nursery and all processes that came from it."""
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _number(self) -> int:
        data = self._control.recv(_NUMBER.size, socket.MSG_WAITALL)
        if len(data) < _NUMBER.size:
            raise BrokenPipeError
        return int(_NUMBER.unpack(data)[0])

    @contextlib.contextmanager
    def _named_end(self) -> Iterator[None]:
        try:
            yield
        except ConnectionError:
            what = "the process that starts those of rewards has ended"
            raise WorkerDiedError(what, "") from None


def _run_and_exit(work: Callable[[], None]) -> None:
    """Never return into the code that forked."""
    try:
        work()
    except reward_process.NoAnswerError:  # the trainer has closed its end
        pass
    except Exception:  # noqa: BLE001  (a defect of ours)
        traceback.print_exc()
    finally:
        os._exit(0)


def _serve(
    worker: int, ours: socket.socket, control: socket.socket, close_descriptors: Sequence[int]
) -> None:
    die_with(worker)
    ours.close()
    for descriptor in close_descriptors:
        os.close(descriptor)
    warm_up()
    nursery = os.getpid()
    children: set[int] = set()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, _NUMBER.size, 2)
        if len(data) < _NUMBER.size:  # the worker is gone
            for child in children:
                _end(child)
            return
        (number,) = _NUMBER.unpack(data)
        if number <= 0:
            children.discard(-number)
            answer = _end(-number)
        else:
            answer = _fork()
            if answer == 0:
                channel, memory = descriptors
                _run_and_exit(functools.partial(_become_reward, nursery, channel, memory, number))
            if answer > 0:
                children.add(answer)
            for descriptor in descriptors:
                os.close(descriptor)
        control.sendall(_NUMBER.pack(answer))


def _fork() -> int:
    """Fork; minus the error's number where that fails, as the other rewards go on."""
    try:
        return os.fork()
    except OSError as error:
        return -(error.errno or errno.EAGAIN)


def _end(pid: int) -> int:
    """Kill and collect a child. Its number is not reused before it is collected."""
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _become_reward(nursery: int, channel: int, memory: int, size: int) -> None:
    die_with(nursery)
    shared = reward_process.SharedTensors(mmap.mmap(memory, size))
    first = reward_process.receive(socket.socket(fileno=os.dup(channel)))
    load = reward_process.Load.model_validate_json(first)
    # from here on the only descriptor that leads anywhere is the socket to its trainer
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(_CHANNEL):
        os.dup2(null, descriptor)
    os.dup2(channel, _CHANNEL)
    os.closerange(_CHANNEL + 1, _MOST_DESCRIPTORS)
    limit_generated_code(open_files=16)
    trainer = socket.socket(fileno=_CHANNEL)
    confine_computation()
    reward_process.serve_reward(trainer, shared, load)
