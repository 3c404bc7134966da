"""`python -P warm_parent.py LISTENER WORKERS MODULE …`: a process that imports modules once, and then
forks itself into programs that would import them.

`LISTENER` is the descriptor of a socket on which `warm_programs.py` asks for programs: for each by
a connection, on which it sends a JSON object and the three descriptors of its standard streams. It
is told the program's process id, and at its end the status. A program whose connection closes
before that is killed, as the kernel kills the worker of a driver that has ended. At the end of
standard input all are.

`WORKERS` is the address of such a process for workers, which its programs ask in turn. The last
argument takes up room.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 17
"""Length of a request."""
_MOST_DESCRIPTORS = 1 << 16


def serve(listener: socket.socket) -> dict[str, Any]:
    """Answer requests until the tests end. Returns in forks alone, in each with its request."""
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    orphans: set[int] = set()
    while True:
        watched = {running[program]: program for program in running if program not in orphans}
        ready, _, _ = select.select([0, listener, woken, *watched], [], [])
        if 0 in ready:
            for program in running:
                os.kill(program, signal.SIGKILL)
            os._exit(0)
        for connection in set(watched).intersection(ready):
            orphans.add(watched[connection])
            os.kill(watched[connection], signal.SIGKILL)
        if woken in ready:
            woken.recv(4096)
            _tell_ends(running, orphans)
        if listener in ready:
            connection, _ = listener.accept()
            data, streams, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
            request = json.loads(data)
            program = os.fork()
            if program == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                if request["start_new_session"]:
                    os.setsid()  # before anybody knows its number, and may kill its session
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                connection.send(b"runs as %d" % os.getpid())
                for used in (listener, woken, wakes, connection, *running.values()):
                    used.close()
                os.closerange(3, _MOST_DESCRIPTORS)
                return request
            for stream in streams:
                os.close(stream)
            running[program] = connection


def _tell_ends(running: dict[int, socket.socket], orphans: set[int]) -> None:
    """Collect programs that have ended, and tell who asked for them."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            program, status = ended
            orphans.discard(program)
            with running.pop(program) as connection, contextlib.suppress(OSError):
                connection.send(b"ended by %d" % status)


def become(request: dict[str, Any], set_by_imports: dict[str, str]) -> None:
    """Run the program of a request in this process, as Python does by `-m`."""
    os.umask(request["umask"])
    os.sched_setaffinity(0, request["cores"])
    os.chdir(request["folder"])
    command, environment = request["command"], request["environment"]
    os.environ.clear()
    _show(command, environment)
    os.environ.update(environment | set_by_imports)
    _open_streams()
    folders = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    module = command.index("-m") + 1
    if "-P" not in command[:module]:
        sys.path.insert(0, request["folder"])
    sys.argv = command[module:]
    is_worker = command[module] == "eureka_agent.worker"
    if is_worker and "--parent" in sys.argv:  # it dies with its parent, which is here this one's
        sys.argv[sys.argv.index("--parent") + 1] = str(os.getppid())
    gc.enable()
    runpy.run_module(command[module], run_name="__main__", alter_sys=True)


def _open_streams() -> None:
    """Reopen Python's standard streams: the parent's refer to other files."""
    unbuffered = "PYTHONUNBUFFERED" in os.environ
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        former = getattr(sys, name)
        raw = io.FileIO(number, "wb" if number else "rb", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedReader(raw)
            if number == 0
            else raw
            if unbuffered
            else io.BufferedWriter(raw),
            encoding=former.encoding,
            errors=former.errors,
            line_buffering=number == 2 or os.isatty(number),
            write_through=unbuffered,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _show(command: list[str], environment: dict[str, str]) -> None:
    """Have /proc show this program's arguments and variables in the place of the parent's, as it
    does after an `exec`; as many as there is room for."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first_argument, end_of_arguments, first_variable, end_of_variables = map(int, fields[45:49])
    variables = [f"{name}={value}" for name, value in environment.items()]
    for start, end, texts in (
        (first_argument, end_of_arguments, command),
        (first_variable, end_of_variables, variables),
    ):
        room = end - start
        block = b"".join(os.fsencode(text) + b"\0" for text in texts)[: room - 1]
        ctypes.memmove(start, block.ljust(room, b"\0"), room)


def main() -> None:
    """Import, then serve."""
    listener, workers, *modules, _ = sys.argv[1:]
    tests = str(Path(__file__).parent)
    sys.path.append(tests)
    import warm_programs

    sys.path.remove(tests)
    warm_programs.use_workers_of(workers)
    before = dict(os.environ)
    gc.disable()
    for module in modules:
        importlib.import_module(module)
    gc.freeze()
    set_by_imports = dict(os.environ.items() - before.items())
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"{len(threads)} threads, of which a fork has one"
    become(serve(socket.socket(fileno=int(listener))), set_by_imports)


if __name__ == "__main__":
    main()
