"""The last wall around one reward: its process keeps the system calls that computing needs and
loses all others, for good.

Called in a process that was forked for one generated function, with torch imported, one thread, and
no file descriptor that it should not have. It holds whatever is around the worker. What it covers:
no file is opened or looked at, no program or thread started, no socket made, no other process
signalled or traced, no memory made executable. What it does not: the descriptors and the shared
memory that the process already has, the memory that it copied from its parent when it was forked,
and the time and memory that it takes (limits and a clock are there for those).

Parts of torch compile machine code as they run. oneDNN is switched off, and so is FBGEMM's compiler
where it has compiled code as well; the two kernels of its product of whole numbers, which has none,
are compiled before (`warm_up`). What is left (quantized layers, mostly) ends the process by SIGSYS,
in a dry run as in a training, and `how_it_ended` says what that means.
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
import struct
import traceback
import warnings
from pathlib import Path

import torch

from eureka_agent.errors import signal_name
from eureka_agent.seccomp import kernel
from eureka_agent.seccomp.assembler import TRAP, Rule, Test, assemble, refuse
from eureka_agent.seccomp.system_calls import Architecture, current_architecture

_PR_SET_DUMPABLE = 4
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 0x1, 0x2, 0x4
_MAP_LOCKED_OR_HUGE = 0x2000 | 0x40000
_WORD = 0xFFFFFFFF
"""Bits of an argument that the kernel takes as an `int`: what is above it does not count, and need
not be 0."""
_CLOCKS = 0xF
"""Numbers of the machine's clocks and of the process's own; those of other processes are
negative."""
_GETRANDOM_FLAGS = 0x1 | 0x4
"""Without waiting, and not GRND_RANDOM, which older kernels take from what all processes share."""
_FUTEX_OPERATIONS, _FUTEX_FLAGS = (0, 1, 9, 10), 128 | 256
"""Waiting and waking. Not those that lend a priority to the owner of a lock, whose number is
anybody's."""
_NUMBER = struct.Struct("=I")
_ANY_PROCESS = 0x7EADBEEF
"""In the place of the number of a process, which is never that large."""
_ADVICE = (0, 1, 2, 3, 4, 8, 14, 15)
"""What allocators say of their memory: normal to "not needed", free, huge pages or none. Not that a
page of the machine's is broken."""

_FREELY_ALLOWED = (
    # memory
    *("brk", "munmap", "mremap"),
    # what it already holds open: its way to the parent, where nothing has a position to move, and
    # /dev/null. No `ioctl`, no `fcntl` (whose owner gets signals), no `ftruncate` (of memory that
    # the parent reads), no `shutdown`
    *("read", "write", "writev", "close", "lseek", "fstat", "poll", "ppoll", "select", "pselect6"),
    # time
    *("gettimeofday", "time", "times", "nanosleep", "alarm", "getitimer", "setitimer", "getrusage"),
    # there is one thread, but libraries do not know; no `membarrier`, which interrupts all
    # processors
    *("sched_yield", "getcpu"),
    # its own signals
    *(
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
        "rt_sigpending",
        "rt_sigsuspend",
        "rt_sigtimedwait",
    ),
    *("sigaltstack", "restart_syscall", "pause"),
    # who it is
    *(
        "getpid",
        "gettid",
        "getppid",
        "getpgrp",
        "getuid",
        "geteuid",
        "getgid",
        "getegid",
        "exit",
        "exit_group",
    ),
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
    *(
        "torch.nn.functional",
        "torch.special",
        "torch.linalg",
        "torch.distributions",
        "torch.nn.utils.parametrize",
    ),
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
    *(
        "itertools",
        "json",
        "logging",
        "math",
        "numbers",
        "numpy",
        "operator",
        "random",
        "re",
        "statistics",
        "string",
    ),
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


# read when FBGEMM computes for the first time, which no import does: sums of embeddings are not
# compiled, but computed by the loops that it has for the purpose
os.environ["FBGEMM_NO_ASMJIT"] = "1"


def confine_computation() -> str | None:
    """Filter this process. None when it is confined; else why the system cannot do it. Raises
    OSError when it can and did not.

    Before: `warm_up()` in the parent, and every descriptor, limit and timer as they are to be.
    """
    reason = kernel.why_not()
    architecture = current_architecture()
    if reason is not None or architecture is None:
        return reason or "no seccomp"
    # what it compiles as it runs could not be executed; torch's own loops and the other libraries
    # are compiled already
    torch.backends.mkldnn.set_flags(False)
    torch.set_num_threads(1)
    _seal_compiled_code()
    with contextlib.suppress(OSError):  # where memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    # closes its memory in /proc to others of the same user
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) failed")
    kernel.apply(computation_filter(architecture, os.getpid()))
    return None


@functools.cache
def warm_up() -> None:
    """In the process that the others are forked from, the first time that it is called: what Python
    and torch load only when it is first used is loaded, as later it cannot be.

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
    _compile_integer_product()
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


def how_it_ended(status: int) -> tuple[str, str]:
    """Message and hint on a confined process that gave no answer. `status`: its exit status, or the
    negative number of the signal that ended it."""
    if status == -signal.SIGSYS:
        return (
            (
                "it needs machine code that torch compiles as it runs, which cannot be computed"
                " behind the wall"
            ),
            "convert to float first, and use neither quantized tensors nor oneDNN's own operators",
        )
    how = (
        f"was ended by {signal_name(-status)}"
        if status < 0
        else f"ended by itself with exit status {status}"
    )
    return (
        f"the process that ran it {how}",
        "compute with torch alone: do not end the process, start others or touch memory",
    )


def _compile_integer_product() -> None:
    """With AVX-512 FBGEMM compiles two kernels for all products of int64, at the first of them, and
    crashes where it cannot."""
    try:
        mmap.mmap(-1, mmap.PAGESIZE, prot=_PROT_READ | _PROT_WRITE | _PROT_EXEC).close()
    except OSError:  # a system that refuses such memory to everybody
        return
    whole = torch.ones(2, 2, dtype=torch.int64)
    torch.mm(whole, whole)


def _seal_compiled_code() -> None:
    """Take the right to write from memory that is executable: the compilers that made it leave
    both."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in Path("/proc/self/maps").read_bytes().splitlines():
        places, rights = line.split(maxsplit=2)[:2]
        if b"wx" in rights:
            begin, end = (int(place, 16) for place in places.split(b"-"))
            if (
                libc.mprotect(
                    ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _PROT_READ | _PROT_EXEC
                )
                != 0
            ):
                raise OSError(ctypes.get_errno(), "mprotect failed")


def computation_filter(architecture: Architecture, process: int) -> bytes:
    """The program for a process of this number, which may send signals to itself alone."""
    return _filter_of_any(architecture).replace(_NUMBER.pack(_ANY_PROCESS), _NUMBER.pack(process))


@functools.cache
def _filter_of_any(architecture: Architecture) -> bytes:
    """Assembled once, before the forks: it would take each of them a millisecond."""
    own = Test(0, _ANY_PROCESS)
    not_executable, executable = Test(2, 0, _PROT_EXEC), Test(2, _PROT_EXEC, _PROT_EXEC)
    return assemble(
        [
            *(Rule(name) for name in _FREELY_ALLOWED),
            # memory that takes its part of what the machine has once for all is not to be had
            # either
            Rule("mmap", (not_executable, Test(3, 0, _MAP_LOCKED_OR_HUGE))),
            Rule("mprotect", (not_executable,)),
            # compilers crash on an error: this tells from other crashes why
            *(Rule(name, (executable,), TRAP) for name in ("mmap", "mprotect")),
            *(Rule("madvise", (Test(2, advice),)) for advice in _ADVICE),
            # to whom it is connected, and to no other address; a flag could send a byte out of
            # band, which its reader would wait for without end
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
                for each in (0, _ANY_PROCESS)
            ),
            # `abort()` and faults that a process brings upon itself
            Rule("kill", (own,)),
            Rule("tkill", (own,)),
            Rule("tgkill", (own,)),
            # looking at its own limits, without new ones
            Rule("getrlimit"),
            *(Rule("prlimit64", (Test(0, each), Test(2, 0))) for each in (0, _ANY_PROCESS)),
            # a C library that is told that this one is missing takes `clone`, which fails as it
            # should
            Rule("clone3", action=refuse(errno.ENOSYS)),
        ],
        refuse(errno.EPERM),
        architecture,
    )
