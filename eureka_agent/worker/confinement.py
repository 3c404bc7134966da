"""The last wall around one reward: its process keeps the system calls that computing needs and loses all others, for good.

Called in a process that was forked for one generated function, with torch imported, one thread, and no file descriptor that it should not have. It holds
whatever is around the worker. What it covers: no file is opened or looked at, no program or thread started, no socket made, no other process signalled or
traced, no memory made executable. What it does not: the descriptors and the shared memory that the process already has, the memory that it copied from its
parent when it was forked, and the time and memory that it takes (limits and a clock are there for those).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import importlib
import os
import struct
import traceback
import warnings
from pathlib import Path

import torch

from eureka_agent.seccomp import kernel
from eureka_agent.seccomp.assembler import Rule, Test, assemble, refuse
from eureka_agent.seccomp.system_calls import Architecture, current_architecture

_PR_SET_DUMPABLE = 4
_PROT_EXEC = 0x4
_NUMBER = struct.Struct("=I")
_ANY_PROCESS = 0x7EADBEEF
"""In the place of the number of a process, which is never that large."""
_ADVICE = (0, 1, 2, 3, 4, 8, 14, 15)
"""What allocators say of their memory: normal to "not needed", free, huge pages or none. Not that a page of the machine's is broken."""

_FREELY_ALLOWED = (
    # memory
    *("brk", "munmap", "mremap"),
    # what it already holds open; no `ioctl`, no `fcntl` (whose owner gets signals), no `ftruncate` (of memory that the parent reads)
    *("read", "write", "readv", "writev", "pread64", "pwrite64", "close", "lseek", "fstat"),
    *("poll", "ppoll", "select", "pselect6", "recvfrom", "recvmsg"),
    # time
    *("clock_gettime", "clock_getres", "clock_nanosleep", "gettimeofday", "time", "times", "nanosleep"),
    *("alarm", "getitimer", "setitimer", "getrusage"),
    # threads' locks: there is one thread, but libraries do not know
    *("futex", "set_robust_list", "rseq", "membarrier", "sched_yield", "getcpu"),
    # its own signals
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait"),
    *("sigaltstack", "restart_syscall", "pause"),
    # who it is
    *("getpid", "gettid", "getppid", "getpgrp", "getpgid", "getsid", "getuid", "geteuid", "getgid", "getegid"),
    *("sched_getaffinity", "getrandom"),
    *("exit", "exit_group"),
)

_LOADED_LATE = (
    # of torch: what printing, indexing and mapping look for at the first use
    *(
        "torch._subclasses.schema_check_mode",
        "functorch.dim._getsetitem",
        "torch.autograd._functions",
        "torch.func",
        "torch.fft",
    ),
    *("torch.nn.functional", "torch.special", "torch.linalg", "torch.distributions", "torch.nn.utils.parametrize"),
    # of Python: what a source of a model tends to import, and what tells of its errors
    *(
        "__future__",
        "abc",
        "cmath",
        "collections.abc",
        "copy",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
    ),
    *("itertools", "json", "logging", "math", "numbers", "numpy", "operator", "random", "re", "statistics", "string"),
    *(
        "textwrap",
        "time",
        "traceback",
        "typing",
        "linecache",
        "tokenize",
        "warnings",
        "encodings.idna",
        "encodings.unicode_escape",
        "unicodedata",
    ),
)


def confine_computation() -> str | None:
    """Filter this process. None when it is confined; else why the system cannot do it. Raises OSError when it can and did not.

    Before: `warm_up()` in the parent, and every descriptor, limit and timer as they are to be.
    """
    reason = kernel.why_not()
    architecture = current_architecture()
    if reason is not None or architecture is None:
        return reason or "no seccomp"
    # what it compiles as it runs could not be executed; its fallbacks and the other libraries are compiled already
    torch.backends.mkldnn.set_flags(False)
    torch.set_num_threads(1)
    with contextlib.suppress(OSError):  # where memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    # closes its memory in /proc to others of the same user
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) failed")
    kernel.apply(computation_filter(architecture, os.getpid()))
    return None


@functools.cache
def warm_up() -> None:
    """In the process that the others are forked from, the first time that it is called: what Python and torch load only when it is first used is loaded, as later it cannot be.

    Begins no thread. Whatever else a reward imports then fails as if it were not there.
    """
    architecture = current_architecture()
    if kernel.why_not() is None and architecture is not None:
        _filter_of_any(architecture)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # this process may itself be a fork of one whose threads it has not
    for module in _LOADED_LATE:
        with contextlib.suppress(ImportError):  # a part of torch that another version of it has not
            importlib.import_module(module)
    x = torch.linspace(0.5, 2.0, 12).reshape(4, 3)
    square = x.T @ x + torch.eye(3)
    with torch.enable_grad():
        weights = x.clone().requires_grad_()
        torch.autograd.grad(weights.tanh().square().sum(), weights)
    torch.einsum("bi,bi->b", x, x)
    torch.linalg.inv(square), torch.linalg.svdvals(square), torch.linalg.eigh(square)
    torch.quantile(x, 0.5, dim=-1), torch.fft.rfft(x), torch.special.erf(x), torch.sort(x)
    torch.nn.functional.conv1d(x[None], torch.ones(1, 4, 2))  # reads /proc/cpuinfo
    (
        torch.ones(64, 64) @ torch.ones(64, 64),
        torch.ones(4, 4, dtype=torch.bfloat16) @ torch.ones(4, 4, dtype=torch.bfloat16),
    )
    torch.func.vmap(torch.sum)(x)
    repr(x), f"{x[0, 0]:.3f}", repr(x > 1), repr(x.to(torch.complex64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("once", stacklevel=1)
    try:
        x[9]
    except IndexError:
        traceback.format_exc()
    torch.set_num_threads(threads)


def computation_filter(architecture: Architecture, process: int) -> bytes:
    """The program for a process of this number, which may send signals to itself alone."""
    return _filter_of_any(architecture).replace(_NUMBER.pack(_ANY_PROCESS), _NUMBER.pack(process))


@functools.cache
def _filter_of_any(architecture: Architecture) -> bytes:
    """Assembled once, before the forks: it would take each of them a millisecond."""
    own = Test(0, _ANY_PROCESS)
    not_executable = Test(2, 0, _PROT_EXEC)
    return assemble(
        [
            *(Rule(name) for name in _FREELY_ALLOWED),
            Rule("mmap", (not_executable,)),
            Rule("mprotect", (not_executable,)),
            *(Rule("madvise", (Test(2, advice),)) for advice in _ADVICE),
            # to whom it is connected, and to no other address
            Rule("sendto", (Test(4, 0),)),
            # `abort()` and faults that a process brings upon itself
            Rule("kill", (own,)),
            Rule("tkill", (own,)),
            Rule("tgkill", (own,)),
            # looking at its own limits, without new ones
            Rule("getrlimit"),
            *(Rule("prlimit64", (Test(0, each), Test(2, 0))) for each in (0, _ANY_PROCESS)),
            # a C library that is told that this one is missing takes `clone`, which fails as it should
            Rule("clone3", action=refuse(errno.ENOSYS)),
        ],
        refuse(errno.EPERM),
        architecture,
    )
