"""Programs of tests, forked from a parent that has imported what they need.

A worker imports torch for a second and a half, a command its parts for half a second, and the tests
start thousands. Here `subprocess` and `asyncio` ask a warm parent (`warm_parent.py`) for a fork
where a test starts one of these programs by this Python's `-m`. It is a process of its own all the
same: its own pipes, session, variables, folder, limits, signals and exit status. Only its imports
have been made before.

A start that is not plain is a real one: with a `preexec_fn`, descriptors besides the standard
streams, or other variables of Python or of the libraries. So are all in tests that are marked
`real_starts`, and all on another system than Linux.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eureka_agent.sandbox.worker_environment import worker_environment

WORKERS, COMMANDS, COMMANDS_WITH_TORCH = "workers", "commands", "commands-with-torch"
# of the commands not `eureka_agent.cli`, which looks at its arguments when it is imported
_COMMANDS = (
    "click",
    "anthropic",
    "eureka_agent.llm.clients",
    "openai",
    "eureka_agent.report.live",
    "eureka_agent.report.tables",
    "eureka_agent.search.session",
)
MODULES = {
    WORKERS: ("eureka_agent.worker.serve", "eureka_agent.simulation.mujoco_task"),
    COMMANDS: _COMMANDS,
    COMMANDS_WITH_TORCH: (
        *_COMMANDS,
        "eureka_agent.export.policy_files",
        "eureka_agent.training.conformance",
        "eureka_agent.simulation.mujoco_task",
        "onnxscript",
        "torch.onnx._internal.exporter._core",
    ),
}
"""The parents, and what each imports."""
_AT_A_START = ("PYTHON", "LD_", "GLIBC_", "LANG", "LC_", "OMP_", "MKL_", "OPENBLAS_", "MUJOCO_")
"""Beginnings of variables that are read once, at a start."""
_ROOM = "x" * (1 << 15)
"""Takes up room in a parent's arguments and variables, into which forks write their own."""
_SIGNATURE = inspect.signature(subprocess.Popen._execute_child)
_PLAIN = {
    "executable": None, "preexec_fn": None, "pass_fds": (), "shell": False,
    "gid": None, "gids": None, "uid": None, "umask": -1, "process_group": -1,
}  # fmt: skip
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_execute_child = subprocess.Popen._execute_child
_internal_poll = subprocess.Popen._internal_poll
_waitpid = os.waitpid


class Fork:
    """A program that was forked, and the connection that tells of its end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._status: int | None = None
        self._reading = threading.Lock()

    def status(self, options: int) -> int | None:
        """Exit status as `waitpid` gives it. With WNOHANG, None while the program runs."""
        select.select([self._connection], [], [], 0 if options & os.WNOHANG else None)
        with self._reading:
            if self._status is None and select.select([self._connection], [], [], 0)[0]:
                self._status = _number(self._connection, "ended by")
        return self._status


class Starts:
    """Replaces this process's own starts of programs."""

    def __init__(self, address_of: Callable[[str], str | None]) -> None:
        """`address_of`: gives the address of the parent of this name; None where there is none."""
        self._address_of = address_of
        self._at_the_start = {parent: _read_at_a_start(_environment(parent)) for parent in MODULES}
        self._forks: dict[int, Fork] = {}
        self.forking = True
        """False: all starts are real ones."""

    def install(self) -> None:
        """From now on, handle the starts of `subprocess`, and of `asyncio` with it."""

        @functools.wraps(_execute_child)
        def execute_child(process: subprocess.Popen[Any], *given: Any, **named: Any) -> None:
            options = _SIGNATURE.bind(process, *given, **named).arguments
            if not self._fork(process, options):
                _execute_child(process, *given, **named)
                # the kernel gives a number again once its process is gone: a fork that had this one
                # and that nobody has waited for is not this program
                self._forks.pop(process.pid, None)

        def internal_poll(process: subprocess.Popen[Any], _deadstate: Any = None) -> int | None:
            return _internal_poll(process, _deadstate, _waitpid=self.waitpid)

        subprocess.Popen._execute_child = execute_child
        subprocess.Popen._internal_poll = internal_poll
        os.waitpid = self.waitpid

    def waitpid(self, process_id: int, options: int) -> tuple[int, int]:
        """`os.waitpid`, which knows the forks too."""
        fork = self._forks.get(process_id)
        if fork is None:
            return _waitpid(process_id, options)
        status = fork.status(options)
        if status is None:
            return 0, 0
        self._forks.pop(process_id, None)
        return process_id, status

    def _fork(self, process: subprocess.Popen[Any], options: dict[str, Any]) -> bool:
        """Have a parent fork the program. False if no parent can become it, or the start is not
        plain."""
        parent = _parent(options["args"])
        environment = dict(os.environ if options["env"] is None else options["env"])
        folder = os.path.abspath(options["cwd"] or ".")
        if (
            not self.forking
            or parent is None
            or any(options[name] != value for name, value in _PLAIN.items())
            or _read_at_a_start(environment) != self._at_the_start[parent]
            or not os.path.isdir(folder)
            or (address := self._address_of(parent)) is None
        ):
            return False
        umask = os.umask(0)
        os.umask(umask)
        request = {
            "command": [os.fsdecode(argument) for argument in options["args"]],
            "environment": environment,
            "folder": folder,
            "start_new_session": options["start_new_session"],
            "umask": umask,
            "cores": sorted(os.sched_getaffinity(0)),
        }
        given = [options[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if stream == -1 else stream for number, stream in enumerate(given)]
        said = json.dumps(request).encode()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(address)
        socket.send_fds(connection, [said], streams)
        process.pid = _number(connection, "runs as")
        process._child_created = True
        self._forks[process.pid] = Fork(connection)
        process._close_pipe_fds(*(options[name] for name in _PIPES))
        return True


class Parents:
    """The warm parents of a process of tests, each started when it is first needed."""

    def __init__(self) -> None:
        self._parents: dict[str, subprocess.Popen[bytes]] = {}

    def address_of(self, name: str) -> str:
        """Address of the parent of this name. That of workers is started with every other one,
        whose forks ask it."""
        for each in (WORKERS, name):
            if each not in self._parents:
                self._parents[each] = self._start(each)
        return self._address(name)

    @functools.cached_property
    def _folder(self) -> Path:
        atexit.register(self._close)
        return Path(tempfile.mkdtemp(prefix="eureka-tests-warm-"))

    def _address(self, name: str) -> str:
        return str(self._folder / name)

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address(name))
            listener.listen(128)
            return subprocess.Popen(
                [
                    *(sys.executable, "-P", str(Path(__file__).with_name("warm_parent.py"))),
                    *(str(listener.fileno()), self._address(WORKERS), *MODULES[name], _ROOM),
                ],
                # one thread: a fork has no other
                env={**_environment(name), "OPENBLAS_NUM_THREADS": "1", "ROOM": _ROOM},
                pass_fds=(listener.fileno(),),
                stdin=subprocess.PIPE,
            )

    def _close(self) -> None:
        for parent in self._parents.values():
            with parent:
                parent.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _number(connection: socket.socket, what: str) -> int:
    """The number in the parent's next message, which is of this kind."""
    said, _, number = connection.recv(64).decode().rpartition(" ")
    assert said == what, f"the warm parent has ended, or said {said!r} in the place of {what!r}"
    return int(number)


def use_workers_of(address: str) -> None:
    """Take workers from the parent at this address. Called in the fork of a command."""
    Starts({WORKERS: address}.get).install()


def _parent(command: object) -> str | None:
    """The name of the parent that can become what this command line starts; None where none can."""
    if sys.platform != "linux" or not isinstance(command, list | tuple):
        return None
    if not command or command[0] != sys.executable:
        return None
    match [word for word in command[1:5] if word != "-P"]:
        case ["-m", "eureka_agent.worker", *_]:
            return WORKERS
        case ["-m", "eureka_agent.cli.main", "envs" | "export", *_]:
            return COMMANDS_WITH_TORCH
        case ["-m", "eureka_agent.cli.main", *_]:
            return COMMANDS
    return None


def _environment(parent: str) -> dict[str, str]:
    """The variables with which a parent is started."""
    return worker_environment(Path("/"), "", None) if parent == WORKERS else dict(os.environ)


def _read_at_a_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are read once, at a start. PYTHONPATH is left out: a fork takes up the
    entries that its parent has not."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_AT_A_START) and name != "PYTHONPATH"
    }


STARTS = Starts(Parents().address_of)
"""Starts of a process of tests, whose parents are started when they are first needed."""
