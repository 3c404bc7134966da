"""The inner wall around one reward: its process keeps the system calls that computing needs.

It is applied in a process that was forked for one generated function, with torch imported, one
thread, and only the descriptors that it should have. The outer wall is around the whole worker.
It covers: opening files or reading their metadata, starting programs or threads, making sockets,
signalling or tracing other processes, making memory executable. It does not cover: the descriptors
and shared memory that the process already has, the memory that it inherited by the fork, and the
time and memory that it takes (limits and timeouts are there for those).

Parts of torch compile machine code at run time. oneDNN is switched off, and so is FBGEMM's compiler
where it has precompiled code as well. FBGEMM's two kernels for products of integers have none, so
they are compiled beforehand (`warm_up`). Other compiled code (mostly quantized layers) ends the
process by SIGSYS, in a dry run as in a training; `describe_exit` then says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import importlib
import mmap
import os
import signal
import traceback
import warnings
from pathlib import Path

import torch

from eureka_agent.boundary import filters
from eureka_agent.boundary.filters import TRAP, Rule, Test, assemble, refuse
from eureka_agent.boundary.system_calls import Architecture, current_architecture
from eureka_agent.errors import signal_name
from eureka_agent.training.observation_trace import traced

_PR_SET_DUMPABLE = 4
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 0x1, 0x2, 0x4
_MAP_LOCKED_OR_HUGE = 0x2000 | 0x40000
_WORD = 0xFFFFFFFF
"""Bits of an `int` argument. The kernel ignores the upper ones, so they need not be 0."""
_CLOCKS = 0xF
"""Clocks of the machine and of the own process; those of other processes are negative."""
_GETRANDOM_FLAGS = 0x1 | 0x4
"""Non-blocking, and not GRND_RANDOM, which drains a shared pool in older kernels."""
_FUTEX_OPERATIONS, _FUTEX_FLAGS = (0, 1, 9, 10), 128 | 256
"""Wait and wake. Priority inheritance is refused: it names the lock's owner, any process."""
_ADVICE = (0, 1, 2, 3, 4, 8, 14, 15)
"""Hints that allocators give: from normal to "not needed", free, huge pages. HWPOISON is refused,
which would break a page of the machine's memory."""

_FREELY_ALLOWED = (
    # memory
    *("brk", "munmap", "mremap"),
    # descriptors that it already has: the socket to the parent, which has no position, and
    # /dev/null. Refused: `ioctl`, `fcntl` (it can direct signals), `ftruncate` (of memory that the
    # parent reads), `shutdown`
    *("read", "write", "writev", "close", "lseek", "fstat", "poll", "ppoll", "select", "pselect6"),
    # time
    *("gettimeofday", "time", "times", "nanosleep", "alarm", "getitimer", "setitimer", "getrusage"),
    # libraries do not know that there is one thread; `membarrier` interrupts all processors
    *("sched_yield", "getcpu"),
    # its own signals
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend"),
    *("rt_sigtimedwait", "sigaltstack", "restart_syscall", "pause"),
    # its own identity, and its end
    *("getpid", "gettid", "getppid", "getpgrp", "getuid", "geteuid", "getgid", "getegid"),
    *("exit", "exit_group"),
)

_LOADED_LATE = (
    # parts of torch that printing, indexing and mapping import at first use
    *("torch._subclasses.schema_check_mode", "functorch.dim._getsetitem"),
    *("torch.autograd._functions", "torch.func", "torch.fft", "torch.nn.functional"),
    *("torch.special", "torch.linalg", "torch.distributions", "torch.nn.utils.parametrize"),
    # parts of Python that generated sources tend to import, and that report its errors
    *("__future__", "abc", "cmath", "collections.abc", "copy", "dataclasses", "decimal", "enum"),
    *("fractions", "functools", "itertools", "json", "logging", "math", "numbers", "numpy"),
    *("operator", "random", "re", "statistics", "string", "textwrap", "time", "traceback"),
    *("typing", "linecache", "tokenize", "warnings", "unicodedata"),
    *("encodings.idna", "encodings.unicode_escape"),
)

# read at FBGEMM's first computation, not at import: sums of embeddings then take its loops
os.environ["FBGEMM_NO_ASMJIT"] = "1"


def confine_computation() -> str | None:
    """Filter this process, after `warm_up()` in the parent and all limits; return why the system
    cannot, or None. Raises OSError where setting a filter failed."""
    reason = filters.unavailable_reason()
    architecture = current_architecture()
    if reason is not None or architecture is None:
        return reason or "no seccomp"
    # code compiled at run time could not be executed; torch has precompiled loops as well
    torch.backends.mkldnn.set_flags(False)
    torch.set_num_threads(1)
    _seal_compiled_code()
    with contextlib.suppress(OSError):  # first to be killed when memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000")
    # hides its memory in /proc from other processes of the same user
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) failed")
    filters.apply(computation_filter(architecture, os.getpid()))
    return None


@functools.cache
def warm_up() -> None:
    """Load what Python and torch load at first use, before forking; a confined fork cannot. Starts
    no thread. Any other import of a reward fails as for a missing module."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # this process may be a fork whose parent had the threads
    for module in _LOADED_LATE:
        with contextlib.suppress(ImportError):  # missing in another version of torch
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
    half = torch.ones(4, 4, dtype=torch.bfloat16)
    torch.ones(64, 64) @ torch.ones(64, 64), half @ half
    _compile_integer_product()
    torch.func.vmap(torch.sum)(x)
    traced(lambda x: x.norm(dim=-1, keepdim=True), {"x": (3,)}, {})
    repr(x), f"{x[0, 0]:.3f}", repr(x > 1), repr(x.to(torch.complex64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("once", stacklevel=1)
    try:
        x[9]
    except IndexError:
        traceback.format_exc()
    torch.set_num_threads(threads)


def describe_exit(status: int) -> tuple[str, str]:
    """Message and hint on a process without answer. `status`: exit status, or minus the signal."""
    if status == -signal.SIGSYS:
        return (
            "it needs machine code that torch compiles as it runs, which the wall forbids",
            "convert to float first, and use neither quantized tensors nor oneDNN's own operators",
        )
    how = f"ended by itself with exit status {status}"
    if status < 0:
        how = f"was ended by {signal_name(-status)}"
    hint = "compute with torch alone: do not end the process, start others or touch memory"
    return f"the process that ran it {how}", hint


def _compile_integer_product() -> None:
    """Have FBGEMM compile its kernels for int64 products: compiled later they crash."""
    try:
        mmap.mmap(-1, mmap.PAGESIZE, prot=_PROT_READ | _PROT_WRITE | _PROT_EXEC).close()
    except OSError:  # the system refuses executable memory to everybody
        return
    whole = torch.ones(2, 2, dtype=torch.int64)
    torch.mm(whole, whole)


def _seal_compiled_code() -> None:
    """Remove the right to write from executable memory: compilers leave both."""
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    for line in Path("/proc/self/maps").read_bytes().splitlines():
        places, rights = line.split(maxsplit=2)[:2]
        if b"wx" in rights:
            begin, end = (int(place, 16) for place in places.split(b"-"))
            size = ctypes.c_size_t(end - begin)
            if mprotect(ctypes.c_void_p(begin), size, _PROT_READ | _PROT_EXEC) != 0:
                raise OSError(ctypes.get_errno(), "mprotect failed")


def computation_filter(architecture: Architecture, process: int) -> bytes:
    """The filter for the process of this number, which may send signals to itself alone."""
    own = Test(0, process)
    not_executable, executable = Test(2, 0, _PROT_EXEC), Test(2, _PROT_EXEC, _PROT_EXEC)
    return assemble(
        [
            *(Rule(name) for name in _FREELY_ALLOWED),
            # locked and huge pages are limited for the whole machine
            Rule("mmap", (not_executable, Test(3, 0, _MAP_LOCKED_OR_HUGE))),
            Rule("mprotect", (not_executable,)),
            # compilers crash on an error code: a trap tells these crashes from others
            *(Rule(name, (executable,), TRAP) for name in ("mmap", "mprotect")),
            *(Rule("madvise", (Test(2, advice),)) for advice in _ADVICE),
            # no other address, and no flags: an out-of-band byte would block its reader for ever
            Rule("sendto", (Test(4, 0), Test(3, 0, _WORD))),
            Rule("recvfrom", (Test(3, 0, _WORD),)),
            *(
                Rule("futex", (Test(1, operation, _WORD & ~_FUTEX_FLAGS),))
                for operation in _FUTEX_OPERATIONS
            ),
            Rule("getrandom", (Test(2, 0, _WORD & ~_GETRANDOM_FLAGS),)),
            *(
                Rule(name, (Test(0, 0, _WORD & ~_CLOCKS),))
                for name in ("clock_gettime", "clock_getres", "clock_nanosleep")
            ),
            *(
                Rule(name, (Test(0, each),))
                for name in ("getpgid", "getsid", "sched_getaffinity")
                for each in (0, process)
            ),
            # `abort()` and the process's own faults
            *(Rule(name, (own,)) for name in ("kill", "tkill", "tgkill")),
            # reading its own limits, without setting them
            Rule("getrlimit"),
            *(Rule("prlimit64", (Test(0, each), Test(2, 0))) for each in (0, process)),
            # a C library that is told that `clone3` is missing tries `clone`, which is refused
            Rule("clone3", action=refuse(errno.ENOSYS)),
        ],
        refuse(errno.EPERM),
        architecture,
    )
