"""Setting a filter on this process, and the reason where the kernel cannot."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys

from eureka_agent.seccomp.assembler import KILL_PROCESS, MOST_INSTRUCTIONS
from eureka_agent.seccomp.system_calls import current_architecture

INSTRUCTION_BYTES = 8
_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_ALL_THREADS = 1


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@functools.cache
def unavailable_reason() -> str | None:
    """None where filters work; else the reason in words. Changes nothing."""
    if sys.platform != "linux":
        return f"seccomp is a part of Linux, and this is {platform.system() or sys.platform}"
    architecture = current_architecture()
    if architecture is None:
        return f"no table of system calls for {platform.machine()!r}"
    action = ctypes.c_uint32(KILL_PROCESS)
    try:
        _call(architecture.numbers["seccomp"], _GET_ACTION_AVAILABLE, 0, ctypes.addressof(action))
    except OSError as error:
        return f"the kernel, or what is around this process, has no seccomp: {error.strerror}"
    return None


def available() -> bool:
    """True where `apply` works."""
    return unavailable_reason() is None


def apply(program: bytes) -> None:
    """Filter every system call of this process, its threads and its children, permanently. Raises
    OSError where the kernel refuses the program, and where `available()` is false."""
    architecture = current_architecture()
    if architecture is None:
        raise OSError(unavailable_reason())
    count, rest = divmod(len(program), INSTRUCTION_BYTES)
    if rest or not 0 < count <= MOST_INSTRUCTIONS:
        raise ValueError(
            f"{len(program)} bytes are no filter, expected 1 to {MOST_INSTRUCTIONS} instructions"
        )
    argument = _Program(count, program)
    _call(architecture.numbers["prctl"], _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    thread = _call(
        architecture.numbers["seccomp"], _SET_MODE_FILTER, _ALL_THREADS, ctypes.addressof(argument)
    )
    if thread:
        raise OSError(f"thread {thread} has a filter of its own, so that none can be set for all")


def _call(number: int, *arguments: int) -> int:
    """Make a system call by its number. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(
        libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(argument) for argument in arguments))
    )
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
