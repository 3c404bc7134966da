"""Limits that a process sets on itself and its children. Linux; elsewhere the parts that exist."""

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
"""Memory that generated code may take on top of its parent's at the fork."""
KERNELS_VARIABLE = "WARP_CACHE_PATH"
"""Names the folder of a GPU's compiled kernels, to warp and to `pack_kernels`."""
# from glibc's malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024
_TRIM_THRESHOLD = 1024 * 1024 * 1024


LIMITED = {
    "data_bytes": resource.RLIMIT_DATA,
    "address_bytes": resource.RLIMIT_AS,
    "cpu_seconds": resource.RLIMIT_CPU,
    "open_files": resource.RLIMIT_NOFILE,
    "file_bytes": resource.RLIMIT_FSIZE,
    "processes": resource.RLIMIT_NPROC,
}
"""The system's limits by name."""


def limit_resources(**limits: int | None) -> None:
    """Lower this process's limits, named as in `LIMITED`, and turn core files off. Before torch is
    imported data is limited and not address space, of which it reserves half a gigabyte."""
    for name, value in {"core": 0, **limits}.items():
        kind = resource.RLIMIT_CORE if name == "core" else LIMITED[name]
        if value is not None:
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def limit_generated_code(*, open_files: int, cpu_seconds: int | None = None) -> None:
    """Limit a fork for generated code: `EXTRA_DATA_BYTES` on top, and no files to write."""
    addresses = _status_bytes("VmSize:")
    limit_resources(
        data_bytes=_status_bytes("VmData:") + EXTRA_DATA_BYTES,
        address_bytes=addresses + EXTRA_DATA_BYTES if addresses else None,
        cpu_seconds=cpu_seconds,
        open_files=open_files,
        file_bytes=0,
    )


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends (on Linux: the thread that forked)."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def pin_to_cores(cores: set[int]) -> None:
    """Run this process and its children on these CPU cores alone, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a core that was taken offline
            os.sched_setaffinity(0, cores)


def _status_bytes(field: str) -> int:
    """A field of /proc/self/status in bytes; 0 where the system has none."""
    try:
        with open("/proc/self/status") as status:
            lines = [line for line in status if line.startswith(field)]
    except OSError:
        return 0
    return int(lines[0].split()[1]) * 1024 if lines else 0


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that `kill_strays` finds them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def keep_freed_memory() -> None:
    """Have glibc's allocator keep large blocks when training starts, so that tensors above 128 kB
    are not mapped anew each time. Does nothing where the C library is not glibc."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)


_spared: set[int] = set()


def spare(child: int) -> None:
    """Have `kill_strays` leave a child alone."""
    _spared.add(child)


def kill_strays() -> None:
    """Kill and collect every child of this process that is not spared, and their orphans."""
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
