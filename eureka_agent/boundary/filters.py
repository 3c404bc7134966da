"""Filters of system calls: the classic BPF program that the kernel runs for each, assembled from
rules, and set on this process. A system call of another architecture ends the process: its number
means another call."""

from __future__ import annotations

import ctypes
import errno
import functools
import platform
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from eureka_agent.boundary.system_calls import (
    KNOWN_NAMES,
    PR_SET_NO_NEW_PRIVS,
    Architecture,
    call,
    current_architecture,
)

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
TRAP = 0x00030000
"""Ends the process by SIGSYS, unless it handles that signal; the system call is not made."""
_ERRNO = 0x00050000
MOST_INSTRUCTIONS = 4096
"""Limit of the kernel."""

_LOAD_WORD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP, _JUMP_IF_EQUAL, _JUMP_IF_GREATER_OR_EQUAL = 0x05, 0x15, 0x35
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_WORD = 0xFFFFFFFF
_LONGEST_CONDITIONAL_JUMP = 255
INSTRUCTION_BYTES = 8
_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_ALL_THREADS = 1


def refuse(number: int = errno.EPERM) -> int:
    """Action that fails a system call with this error number."""
    if not 0 < number < 4096:
        raise ValueError(f"{number!r} is no error number, expected 1 to 4095")
    return _ERRNO | number


@dataclass(frozen=True)
class Test:
    """Condition `argument & mask == value` on all 64 bits. As the kernel may use the lower half
    alone, an allow-list refuses some calls needlessly, and allows none by mistake."""

    __test__ = False  # not a class of pytest's

    argument: int
    """Its index, from 0."""
    value: int
    mask: int = (1 << 64) - 1

    def __post_init__(self) -> None:
        """Raises ValueError for a value that no register can hold."""
        in_bounds = 0 <= self.argument < 6 and 0 <= self.value <= self.mask < 1 << 64
        if not in_bounds or self.value & ~self.mask:
            raise ValueError(
                f"{self!r}: expected an argument of 0 to 5 and a value within its mask of 64 bits"
            )


@dataclass(frozen=True)
class Rule:
    """Action for a system call that passes all tests; the first fitting rule applies."""

    name: str
    tests: tuple[Test, ...] = field(default=())
    action: int = ALLOW


def assemble(rules: Sequence[Rule], default: int, architecture: Architecture) -> bytes:
    """Assemble an array of `struct sock_filter`, without names that this architecture lacks. Raises
    ValueError for a name that no architecture has, and for a program that is too long."""
    by_number: dict[int, list[Rule]] = {}
    for rule in rules:
        if rule.name not in KNOWN_NAMES:
            raise ValueError(f"{rule.name!r} is no system call that is known here")
        if rule.name in architecture.numbers:
            by_number.setdefault(architecture.numbers[rule.name], []).append(rule)

    program = [
        _instruction(_LOAD_WORD, _ARCHITECTURE_OFFSET),
        _instruction(_JUMP_IF_EQUAL, architecture.audit_number, 1, 0),
        _instruction(_RETURN, KILL_PROCESS),
        _instruction(_LOAD_WORD, _NUMBER_OFFSET),
    ]
    if architecture.foreign_from is not None:
        program += [
            _instruction(_JUMP_IF_GREATER_OR_EQUAL, architecture.foreign_from, 0, 1),
            _instruction(_RETURN, KILL_PROCESS),
        ]
    for number in sorted(by_number):
        body = _body(by_number[number], default)
        if len(body) <= _LONGEST_CONDITIONAL_JUMP:
            program.append(_instruction(_JUMP_IF_EQUAL, number, 0, len(body)))
        else:
            program += [_instruction(_JUMP_IF_EQUAL, number, 1, 0), _instruction(_JUMP, len(body))]
        program += body
    program.append(_instruction(_RETURN, default))
    if len(program) > MOST_INSTRUCTIONS:
        raise ValueError(
            f"the filter has {len(program)} instructions, expected at most {MOST_INSTRUCTIONS}"
        )
    return b"".join(program)


def _body(rules: Sequence[Rule], default: int) -> list[bytes]:
    """Code for one number; it always returns, as the accumulator no longer holds the number."""
    body: list[bytes] = []
    for rule in rules:
        halves = [half for test in rule.tests for half in _halves(test)]
        lengths = [2 if mask == _WORD else 3 for _, mask, _ in halves]
        for index, (offset, mask, value) in enumerate(halves):
            body.append(_instruction(_LOAD_WORD, offset))
            if mask != _WORD:
                body.append(_instruction(_AND, mask))
            # skips the other halves and the return
            body.append(_instruction(_JUMP_IF_EQUAL, value, 0, sum(lengths[index + 1 :]) + 1))
        body.append(_instruction(_RETURN, rule.action))
        if not rule.tests:
            return body
    return [*body, _instruction(_RETURN, default)]


def _halves(test: Test) -> list[tuple[int, int, int]]:
    """Offset, mask and value of each 32-bit half in a test, the lower half first."""
    low = _ARGUMENTS_OFFSET + 8 * test.argument
    halves = [
        (low, test.mask & _WORD, test.value & _WORD),
        (low + 4, test.mask >> 32, test.value >> 32),
    ]
    return [half for half in halves if half[1]]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@functools.cache
def unavailable_reason() -> str | None:
    """None where filters work; else the reason in words. Changes nothing."""
    if sys.platform != "linux":
        return f"seccomp is a part of Linux, and this is {platform.system() or sys.platform}"
    if current_architecture() is None:
        return f"no table of system calls for {platform.machine()!r}"
    action = ctypes.c_uint32(KILL_PROCESS)
    try:
        call("seccomp", _GET_ACTION_AVAILABLE, 0, ctypes.addressof(action))
    except OSError as error:
        return f"the kernel, or what is around this process, has no seccomp: {error.strerror}"
    return None


def available() -> bool:
    """True where `apply` works."""
    return unavailable_reason() is None


def apply(program: bytes) -> None:
    """Filter every system call of this process, its threads and its children, permanently. Raises
    OSError where the kernel refuses the program, and where `available()` is false."""
    if current_architecture() is None:
        raise OSError(unavailable_reason())
    count, rest = divmod(len(program), INSTRUCTION_BYTES)
    if rest or not 0 < count <= MOST_INSTRUCTIONS:
        raise ValueError(
            f"{len(program)} bytes are no filter, expected 1 to {MOST_INSTRUCTIONS} instructions"
        )
    argument = _Program(count, program)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    thread = call("seccomp", _SET_MODE_FILTER, _ALL_THREADS, ctypes.addressof(argument))
    if thread:
        raise OSError(f"thread {thread} has a filter of its own, so that none can be set for all")
