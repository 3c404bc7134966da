"""What a process does to limit itself and its children. Linux; elsewhere the parts that exist."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
EXTRA_DATA_BYTES = 1 << 30
"""Memory that generated code may take on top of what the process has that it was forked from."""


def limit_resources(
    *,
    data_bytes: int | None = None,
    address_bytes: int | None = None,
    cpu_seconds: int | None = None,
    open_files: int | None = None,
    file_bytes: int | None = None,
    processes: int | None = None,
) -> None:
    """Lower this process's limits, for itself and all that it starts; None leaves one as it is. No
    core files in any case.

    Data and not address space is limited before torch is imported, which reserves over half a
    gigabyte of addresses that it never uses. For generated code both are: memory that is mapped as
    shared, or as a stack, is no data.
    """
    _lower(resource.RLIMIT_CORE, 0)
    if data_bytes is not None:
        _lower(resource.RLIMIT_DATA, data_bytes)
    if address_bytes is not None:
        _lower(resource.RLIMIT_AS, address_bytes)
    if cpu_seconds is not None:
        _lower(resource.RLIMIT_CPU, cpu_seconds)
    if open_files is not None:
        _lower(resource.RLIMIT_NOFILE, open_files)
    if file_bytes is not None:
        _lower(resource.RLIMIT_FSIZE, file_bytes)
    if processes is not None:
        _lower(resource.RLIMIT_NPROC, processes)


def limit_generated_code(
    *, extra_bytes: int, open_files: int, cpu_seconds: int | None = None
) -> None:
    """The limits of a fork in which generated code is to run: so much memory on top of what it has,
    and no files to write."""
    addresses = address_bytes_in_use()
    limit_resources(
        data_bytes=data_bytes_in_use() + extra_bytes,
        address_bytes=addresses + extra_bytes if addresses else None,
        cpu_seconds=cpu_seconds,
        open_files=open_files,
        file_bytes=0,
    )


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which started it, ends in any way (on Linux:
    the thread that did)."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def pin(cores: set[int]) -> None:
    """Run this process, and all that it starts, on these CPU cores alone. Nothing happens where the
    system cannot, or will not."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a core that was taken away since
            os.sched_setaffinity(0, cores)


def data_bytes_in_use() -> int:
    """What RLIMIT_DATA counts of this process; 0 where the system does not tell."""
    return _status_bytes("VmData:")


def address_bytes_in_use() -> int:
    """What RLIMIT_AS counts of this process; 0 where the system does not tell."""
    return _status_bytes("VmSize:")


def _status_bytes(field: str) -> int:
    try:
        with open("/proc/self/status") as status:
            lines = [line for line in status if line.startswith(field)]
    except OSError:
        return 0
    return int(lines[0].split()[1]) * 1024 if lines else 0


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent, a descendant of this one, has ended:
    `kill_strays` then finds them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_spared: set[int] = set()


def spare(child: int) -> None:
    """Have `kill_strays` leave a child alone."""
    _spared.add(child)


def kill_strays() -> None:
    """Kill and collect every child of this process that is not spared, and what they leave
    behind."""
    while children := [child for child in _children() if child not in _spared]:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:  # no /proc
        return []
    return [int(word) for word in text.split()]
