"""Assembled filters, judged by an interpreter of its own and by the kernel."""

from __future__ import annotations

import ctypes
import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import bpf_machine
import pytest

from eureka_agent.boundary import filters
from eureka_agent.boundary.filters import ALLOW, KILL_PROCESS, Rule, Test, assemble, refuse
from eureka_agent.boundary.system_calls import (
    AARCH64,
    ARCHITECTURES,
    KNOWN_NAMES,
    X86_64,
    current_architecture,
)

EPERM, ENOSYS = refuse(errno.EPERM), refuse(errno.ENOSYS)
HIGH = 1 << 32


def verdict(program: bytes, name: str, *arguments: int) -> int:
    return bpf_machine.run(program, X86_64.audit_number, X86_64.numbers[name], arguments)


def test_what_is_listed_is_allowed_and_the_rest_is_not() -> None:
    program = assemble([Rule("read"), Rule("clone3", action=ENOSYS)], EPERM, X86_64)
    for name, number in X86_64.numbers.items():
        expected = {"read": ALLOW, "clone3": ENOSYS}.get(name, EPERM)
        assert bpf_machine.run(program, X86_64.audit_number, number) == expected


@pytest.mark.parametrize("other", [AARCH64.audit_number, 0x40000003, 0, 0xFFFFFFFF])
def test_another_architecture_ends_the_process(other: int) -> None:
    assert bpf_machine.run(assemble([Rule("read")], ALLOW, X86_64), other, 0) == KILL_PROCESS


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 + X86_64.numbers["read"], 0xFFFFFFFF])
def test_x32_ends_the_process(number: int) -> None:
    program = assemble([Rule("read")], EPERM, X86_64)
    assert bpf_machine.run(program, X86_64.audit_number, number) == KILL_PROCESS
    program = assemble([Rule("read")], EPERM, AARCH64)  # which has no such thing
    assert bpf_machine.run(program, AARCH64.audit_number, number) == EPERM


def test_equality_looks_at_all_64_bits() -> None:
    program = assemble([Rule("kill", (Test(0, 4242),))], EPERM, X86_64)
    assert verdict(program, "kill", 4242, 9) == ALLOW
    for other in (4243, 0, 4242 | HIGH, 4242 | 1 << 63, (1 << 64) - 1):
        assert verdict(program, "kill", other, 9) == EPERM
    program = assemble([Rule("lseek", (Test(1, 5 << 32 | 7),))], EPERM, X86_64)
    assert verdict(program, "lseek", 0, 5 << 32 | 7) == ALLOW
    for other in (7, 5 << 32, 6 << 32 | 7, 5 << 32 | 8):
        assert verdict(program, "lseek", 0, other) == EPERM


def test_random_rules_say_what_a_plain_reading_of_them_says() -> None:
    draw = random.Random(7)
    values = [0, 1, 4, HIGH, HIGH | 1, (1 << 64) - 1, 0xFFFFFFFF]
    names = sorted(X86_64.numbers)
    for _ in range(30):
        rules = []
        for name in draw.choices(names, k=60):
            tests = []
            for _ in range(draw.choice([0, 0, 1, 2, 6])):
                mask = draw.choice([(1 << 64) - 1, 0xFFFFFFFF, 5, HIGH | 4])
                tests.append(Test(draw.randrange(6), draw.choice(values) & mask, mask))
            rules.append(Rule(name, tuple(tests), draw.choice([ALLOW, ENOSYS])))
        program = assemble(rules, EPERM, X86_64)
        for _ in range(200):
            name, arguments = (
                draw.choice([rule.name for rule in rules]),
                tuple(draw.choices(values, k=6)),
            )
            fitting = [
                rule.action
                for rule in rules
                if rule.name == name
                and all(arguments[each.argument] & each.mask == each.value for each in rule.tests)
            ]
            assert verdict(program, name, *arguments) == (fitting or [EPERM])[0]


def test_a_rule_of_many_alternatives_jumps_far_enough() -> None:
    many = [Rule("ioctl", (Test(1, number), Test(2, HIGH | number))) for number in range(100)]
    program = assemble([*many, Rule("writev")], EPERM, X86_64)
    assert verdict(program, "ioctl", 0, 99, HIGH | 99) == ALLOW
    assert verdict(program, "ioctl", 0, 99, 99) == EPERM
    assert verdict(program, "writev") == ALLOW
    assert verdict(program, "read") == EPERM


def test_names_of_the_other_architecture_are_left_out_and_unknown_ones_refused() -> None:
    assert assemble([Rule("open"), Rule("read")], EPERM, AARCH64) == assemble(
        [Rule("read")], EPERM, AARCH64
    )
    with pytest.raises(ValueError, match="'opne'"):
        assemble([Rule("opne")], EPERM, X86_64)
    with pytest.raises(ValueError, match="at most 4096"):
        assemble([Rule("ioctl", (Test(1, number),)) for number in range(1000)], EPERM, X86_64)


@pytest.mark.parametrize(
    "wrong", [(6, 0), (-1, 0), (0, -1), (0, 1 << 64), (0, 8, 4), (0, 0, 1 << 64)]
)
def test_what_no_register_holds_is_no_test(wrong: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected an argument"):
        Test(*wrong)


@pytest.mark.parametrize("number", [0, -1, 4096])
def test_what_is_no_error_number_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="error number"):
        refuse(number)


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


def test_numbers_agree_with_what_the_kernel_promises() -> None:
    names = ("read", "execve", "openat", "seccomp", "clone3")
    assert [X86_64.numbers[name] for name in names] == [0, 59, 257, 317, 435]
    assert [AARCH64.numbers[name] for name in names] == [63, 221, 56, 277, 435]
    assert "open" not in AARCH64.numbers
    for architecture in ARCHITECTURES:
        assert len(set(architecture.numbers.values())) == len(architecture.numbers)


def test_numbers_agree_with_the_seccomp_library() -> None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp is not installed")
    compared = 0
    for architecture in ARCHITECTURES:
        for name in sorted(KNOWN_NAMES):
            number = library.seccomp_syscall_resolve_name_arch(
                architecture.audit_number, name.encode()
            )
            if number >= 0:
                assert architecture.numbers.get(name) == number, (architecture.machine, name)
                compared += 1
            elif number < -1:  # a number of the library's own: the architecture has no such call
                assert name not in architecture.numbers, (architecture.machine, name)
    assert compared > 600


# ── the kernel ────────────────────────────────────────────────────────────────────────────────────

needs_kernel = pytest.mark.skipif(not filters.available(), reason=str(filters.unavailable_reason()))


def ends_with(work: Callable[[], None]) -> int:
    """Exit status of a fork that does this: 0 when it returns, 1 when it raises, negative: a
    signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_kernel
def test_the_kernel_agrees_on_arguments_with_high_bits() -> None:
    architecture = current_architecture()
    assert architecture is not None
    low, high = 0x1234, 5 << 32 | 0x1234
    rules = [
        Rule("lseek", (Test(0, 0xFFFFFFFF, 0xFFFFFFFF), Test(1, low)), refuse(71)),
        Rule("lseek", (Test(1, high),), refuse(72)),
    ]
    program = assemble(
        [*rules, Rule("lseek", (Test(1, 1 << 62, 3 << 62),), refuse(73))], ALLOW, architecture
    )

    def probe() -> None:
        filters.apply(program)
        for descriptor, offset, expected in [
            (-1, low, 71),
            (-1, high, 72),
            (7 << 32 | 0xFFFFFFFF, low, 71),
            (999, low, errno.EBADF),
            (-1, 6 << 32 | 0x1234, errno.EBADF),
            (-1, 1 << 62, 73),
            (-1, 1 << 62 | high, 73),
            (-1, 3 << 62, errno.EBADF),
        ]:
            assert error_of(architecture.numbers["lseek"], descriptor, offset, 0) == expected

    assert ends_with(probe) == 0


def error_of(number: int, *arguments: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(
        ctypes.c_long(number), *(ctypes.c_ulong(each & (1 << 64) - 1) for each in arguments)
    )
    return ctypes.get_errno() if result == -1 else 0


@needs_kernel
def test_the_kernel_ends_a_process_that_calls_by_another_interface() -> None:
    architecture = current_architecture()
    if architecture is not X86_64:
        pytest.skip("x32 is a part of x86_64")

    def probe() -> None:
        filters.apply(assemble([], ALLOW, X86_64))
        error_of(0x40000000 + X86_64.numbers["getpid"])

    assert ends_with(probe) == -31  # SIGSYS


@needs_kernel
def test_a_filter_holds_for_threads_and_children_and_is_never_taken_off() -> None:
    architecture = current_architecture()
    assert architecture is not None
    getpid = architecture.numbers["getpid"]

    def probe() -> None:
        filters.apply(assemble([Rule("getpid", action=EPERM)], ALLOW, architecture))
        filters.apply(assemble([Rule("getpid")], ALLOW, architecture))
        assert error_of(getpid) == errno.EPERM
        assert ends_with(lambda: os._exit(error_of(getpid))) == errno.EPERM
        assert "NoNewPrivs:\t1" in Path("/proc/self/status").read_text()

    assert ends_with(probe) == 0
    assert error_of(getpid) == 0  # this process is as it was


@needs_kernel
def test_what_the_kernel_refuses_raises() -> None:
    def probe() -> None:
        with pytest.raises(OSError, match="Invalid argument"):
            filters.apply(b"\x05\x00\x00\x00\xff\x00\x00\x00")  # a jump out of the program
        with pytest.raises(ValueError, match="no filter"):
            filters.apply(b"")

    assert ends_with(probe) == 0


def test_a_system_without_it_is_told_and_nothing_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    filters.unavailable_reason.cache_clear()
    try:
        assert not filters.available()
        assert "part of Linux" in str(filters.unavailable_reason())
    finally:
        filters.unavailable_reason.cache_clear()
