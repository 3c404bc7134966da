"""A confined process: it computes what any other does, and everything else fails. Each test is a
real fork under the filter."""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import bpf_machine
import pytest
import torch
import torch_calls

from eureka_agent.boundary import filters
from eureka_agent.boundary.filters import ALLOW, refuse
from eureka_agent.boundary.system_calls import ARCHITECTURES, Architecture, current_architecture
from eureka_agent.resources import resource_folder
from eureka_agent.worker.confinement import (
    _FREELY_ALLOWED,
    computation_filter,
    confine_computation,
    describe_exit,
    warm_up,
)

pytestmark = pytest.mark.skipif(not filters.available(), reason=str(filters.unavailable_reason()))
HIGH = 1 << 32
SECONDS = 60.0


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    torch.set_num_threads(1)
    warm_up()


def in_fork(work: Callable[[], object], confined: bool = True) -> str:
    """Result of `work` as text; else its traceback, or how the process ended. It is killed after
    `SECONDS`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()  # which would write of signals that are meant
            os.close(reading)
            if confined:
                assert confine_computation() is None
            try:
                data = str(work())
            except BaseException:  # noqa: BLE001  (the parent looks at it)
                data = traceback.format_exc()
            unwritten = data.encode()
            while unwritten:
                unwritten = unwritten[os.write(writing, unwritten) :]
        finally:
            os._exit(0)
    os.close(writing)
    late = threading.Timer(SECONDS, os.kill, (child, signal.SIGKILL))
    late.start()
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read().decode()
    late.cancel()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return data if status == 0 else f"ended with {status}"


def error_of(name: str, *arguments: object) -> int:
    """The error number of a system call by its number; 0 when it worked; -1 where there is none of
    this name."""
    architecture = current_architecture()
    assert architecture is not None
    if name not in architecture.numbers:
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    converted = [
        ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_ulong(each)
        for each in arguments
    ]  # type: ignore[arg-type]
    result = libc.syscall(ctypes.c_long(architecture.numbers[name]), *converted)
    return ctypes.get_errno() if result == -1 else 0


# ── what is refused ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: Path("/etc/hostname").read_text(),
        lambda: Path("/tmp/new").write_text(""),
        lambda: os.stat("/"),
        lambda: os.listdir("/"),
        lambda: os.unlink("/tmp/new"),
        lambda: os.getcwd(),
        lambda: Path("/proc/self/mem").read_bytes(),
        lambda: os.fork(),
        lambda: os.system("true") == 0 or os.execv("/bin/true", ["true"]),
        lambda: subprocess.run(["true"]),
        lambda: socket.socket(),
        lambda: threading.Thread(target=print).start(),
        lambda: socket.socketpair(),
        lambda: os.pipe(),
        lambda: os.memfd_create("x"),
        lambda: os.kill(os.getppid(), signal.SIGKILL),
        lambda: os.kill(-1, 0),
        lambda: os.setsid(),
        lambda: os.sched_setaffinity(0, {0}),
        lambda: os.setuid(65534),
        lambda: os.get_terminal_size(0),
    ],
)  # fmt: skip
def test_python_meets_an_error_of_permission(attempt: Callable[[], object]) -> None:
    said = in_fork(attempt)
    assert "PermissionError" in said or "can't start new thread" in said


REFUSED: dict[str, tuple[object, ...]] = {
    # files, descriptors, sockets, processes
    "openat": (0xFFFFFF9C, b"/etc/passwd", 0), "newfstatat": (0, b"", 0, 0x1000), "ftruncate": (1, 0), "open_by_handle_at": (0, 0, 0),
    "ioctl": (0, 0x5413, 0), "fcntl": (0, 8, 1), "memfd_create": (b"x", 0), "sendfile": (1, 0, 0, 1), "pidfd_getfd": (0, 0, 0, 0),
    "socket": (1, 1, 0), "sendmsg": (1, 0, 0), "sendto": (1, 0, 0, 0, 1, 16), "recvmsg": (0, 0, 0), "shutdown": (0, 1),
    "clone": (17, 0, 0, 0, 0), "execve": (b"/bin/true", 0, 0), "setns": (0, 0), "wait4": (0xFFFFFFFF, 0, 1, 0),
    "ptrace": (0, 0, 0, 0), "process_vm_readv": (1, 0, 0, 0, 0, 0),
    # calls that are allowed with other arguments
    "getpgid": (1,), "getsid": (1,), "sched_getaffinity": (1, 128, 0), "clock_gettime": (-1 << 3, 0), "clock_nanosleep": (-1 << 3, 0, 0, 0),
    "futex": (0, 6, 0, 0, 0, 0), "getrandom": (0, 1, 2), "prlimit64": (0, 7, 1, 0), "mmap": (0, 4096, 3, 0x2022, -1, 0), "madvise": (0, 4096, 100),
    # itself, and the machine
    "prctl": (4, 1, 0, 0, 0), "seccomp": (0, 0, 0), "setrlimit": (7, 0), "setuid": (65534,), "mlock": (0, 4096), "shmget": (0, 4096, 0o1600),
    "io_uring_setup": (8, 0), "bpf": (0, 0, 0), "perf_event_open": (0, 0, 0, 0, 0), "keyctl": (0, 0), "uname": (0,),
}  # fmt: skip


def test_raw_system_calls_are_refused() -> None:
    found = json.loads(
        in_fork(
            lambda: json.dumps({name: error_of(name, *given) for name, given in REFUSED.items()})
        )
    )
    assert {name: code for name, code in found.items() if code not in (errno.EPERM, -1)} == {}


def test_every_number_that_is_not_listed_is_refused() -> None:
    """The kernel is asked for each number with arguments that none of the allowed ones would
    take."""
    architecture = current_architecture()
    assert architecture is not None
    special = {"mmap", "mprotect", "getrlimit", "clone3"}
    skipped = {architecture.numbers.get(name) for name in (*_FREELY_ALLOWED, *special)}
    if architecture.machine == "x86_64":  # the kernel's way back from its probes asks no filter
        skipped |= {335, 336}
    numbers = [number for number in range(600) if number not in skipped]
    libc = ctypes.CDLL(None, use_errno=True)

    def probe() -> str:
        return json.dumps(
            [
                number
                for number in numbers
                if libc.syscall(number, *[ctypes.c_long(-1)] * 6) != -1
                or ctypes.get_errno() != errno.EPERM
            ]
        )

    assert json.loads(in_fork(probe)) == []
    assert len(numbers) > 500


@pytest.mark.parametrize(
    "architecture", ARCHITECTURES, ids=lambda architecture: architecture.machine
)
@pytest.mark.parametrize("process", [1, 4242, 4_194_304])
def test_its_own_number_is_in_the_filter_wherever_a_process_is_meant(
    architecture: Architecture, process: int
) -> None:
    program = computation_filter(architecture, process)
    for name in ("kill", "tkill", "tgkill"):
        number = architecture.numbers[name]
        assert bpf_machine.run(program, architecture.audit_number, number, (process, 0, 0)) == ALLOW
        for other in (process + 1, 0, (1 << 64) - process, process | HIGH, 0x7EADBEEF):
            assert bpf_machine.run(
                program, architecture.audit_number, number, (other, 0, 0)
            ) == refuse(errno.EPERM)
    number = architecture.numbers["prlimit64"]
    for asked, expected in ((process, ALLOW), (0, ALLOW), (process + 1, refuse(errno.EPERM))):
        assert (
            bpf_machine.run(program, architecture.audit_number, number, (asked, 7, 0, 1))
            == expected
        )


def test_clone3_is_said_to_be_missing_so_that_libraries_fall_back() -> None:
    assert in_fork(lambda: error_of("clone3", 0, 0)) == str(errno.ENOSYS)


def test_arguments_with_high_bits_do_not_slip_through() -> None:
    def probe() -> str:
        own = os.getpid()
        return json.dumps(
            [
                error_of("kill", own | HIGH, 0),
                error_of("tgkill", own | HIGH, own, 0),
                error_of("tkill", (1 << 64) - own, 0),
                error_of("mmap", 0, 4096, 3, 0x2022 | HIGH, (1 << 64) - 1, 0),
                error_of("futex", 0, 6 | HIGH, 0, 0, 0, 0),
                error_of("getrandom", 0, 1, 2 | HIGH),
                error_of("sched_getaffinity", HIGH, 128, 0),
                error_of("madvise", 0, 4096, 4 | HIGH),
                error_of("sendto", 1, 0, 0, 0, HIGH, 16),
                error_of("prlimit64", 0, 7, HIGH, 0),
                error_of("prlimit64", HIGH, 7, 0, 0),
            ]
        )

    assert set(json.loads(in_fork(probe))) == {errno.EPERM}


@pytest.mark.parametrize("flag", [1 << bit for bit in range(32)], ids=hex)
def test_what_passes_over_a_socket_has_no_flags(flag: int) -> None:
    """MSG_OOB is 1: a byte out of band is announced to a reader that then waits for it."""
    architecture = current_architecture()
    assert architecture is not None
    program = computation_filter(architecture, 4242)
    for name in ("sendto", "recvfrom"):
        number = architecture.numbers[name]
        assert (
            bpf_machine.run(program, architecture.audit_number, number, (3, 1, 2, 0, 0, 0)) == ALLOW
        )
        assert bpf_machine.run(
            program, architecture.audit_number, number, (3, 1, 2, flag, 0, 0)
        ) == refuse(errno.EPERM)


def test_no_byte_out_of_band_reaches_the_other_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert "PermissionError" in in_fork(lambda: theirs.send(b"x", socket.MSG_OOB))
        theirs.close()
        assert ours.recv(1, socket.MSG_DONTWAIT) == b""


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: error_of("mmap", 0, 4096, 7, 0x22, -1, 0),
        lambda: error_of("mmap", 0, 4096, 7 | HIGH, 0x22, -1, 0),
        lambda: error_of("mprotect", 0, 4096, 5),
        lambda: error_of("mprotect", 0, 4096, 4 | 1 << 63),
        lambda: mmap.mmap(-1, 4096, prot=7),
    ],
)  # fmt: skip
def test_memory_for_code_ends_the_process_by_a_signal_of_its_own(
    attempt: Callable[[], object],
) -> None:
    assert in_fork(attempt) == f"ended with {-signal.SIGSYS}"
    message, hint = describe_exit(-signal.SIGSYS)
    assert "which the wall forbids" in message
    assert "convert to float first" in hint


def test_no_memory_can_be_both_written_and_executed() -> None:
    """This includes memory that the parent left so: a compiler's, of which it made code before the
    fork."""
    with mmap.mmap(-1, 4096, prot=7) as memory:
        memory[:1] = b"x"

        def rights() -> str:
            with open(
                "/proc/self/maps"
            ) as maps:  # whose rights to be read are looked at when it is opened
                assert confine_computation() is None
                return json.dumps([line for line in maps if "wx" in line.split()[1]])

        assert json.loads(in_fork(rights, confined=False)) == []


def test_its_memory_and_files_in_proc_are_closed_to_others_of_its_user() -> None:
    libc = ctypes.CDLL(None)
    assert libc.prctl(3, 0, 0, 0, 0) == 1  # PR_GET_DUMPABLE: this process is as it was
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        confine_computation()
        os.write(writing, b"x")
        time.sleep(60)
    try:
        os.read(reading, 1)
        # what another user owns was closed to its own
        assert Path(f"/proc/{child}/maps").stat().st_uid == 0
        assert Path(f"/proc/{child}/oom_score_adj").read_text() == "1000\n"
        assert "Seccomp:\t2" in Path(f"/proc/{child}/status").read_text()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading), os.close(writing)


def test_a_fork_of_a_process_with_threads_warms_up_and_confines_its_own() -> None:
    program = textwrap.dedent("""
        import os, signal, torch
        torch.set_num_threads(2)
        (torch.rand(1000, 1000) @ torch.rand(1000, 1000)).exp().sum()
        from eureka_agent.worker.confinement import confine_computation, warm_up
        if os.fork() == 0:
            signal.alarm(30)
            warm_up()
            confine_computation()
            (torch.rand(1000, 1000) @ torch.rand(1000, 1000)).exp().sum()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
        """)
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


# ── what goes on ──────────────────────────────────────────────────────────────────────────────────


def test_torch_computes_the_same_as_outside() -> None:
    """Bit for bit, with oneDNN left out on both sides: inside it cannot compile."""
    calls = torch_calls.broad_list()

    def outside() -> str:
        torch.backends.mkldnn.enabled = False
        return json.dumps(torch_calls.outcomes(calls))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = json.loads(in_fork(outside, confined=False))
        found = json.loads(in_fork(lambda: json.dumps(torch_calls.outcomes(calls))))
    different = {
        name: (expected[name], found[name]) for name in expected if found[name] != expected[name]
    }
    assert different == {}
    worked = {name.split("/")[0] for name, text in expected.items() if "Error: " not in text[:60]}
    assert len(worked) > 500


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: torch.ones(3)[7], "IndexError: index 7 is out of bounds"),
        (lambda: torch.ones(10**14), "can't allocate memory"),
        (lambda: __import__("this"), "ModuleNotFoundError"),
        (lambda: os.kill(os.getpid(), 0), "None"),
        (lambda: os.abort(), f"ended with {-signal.SIGABRT}"),
        (lambda: ctypes.string_at(8), f"ended with {-signal.SIGSEGV}"),
        (lambda: os._exit(3), "ended with 3"),
    ],
)  # fmt: skip
def test_python_lives_on_and_errors_are_those_of_python(
    work: Callable[[], object], said: str
) -> None:
    assert said in in_fork(work)


def test_a_timer_of_its_own_rings() -> None:
    def wait() -> str:
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("rang")))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        while True:
            pass

    assert "TimeoutError: rang" in in_fork(wait)


def test_a_socket_and_shared_memory_that_it_has_go_on_working() -> None:
    ours, theirs = socket.socketpair()
    shared = torch.zeros(1000).share_memory_()

    def serve() -> str:
        received = theirs.recv(100)
        shared.copy_(torch.full((1000,), 7.0))
        theirs.sendall(received * 2)
        return "served"

    ours.sendall(b"twice ")
    assert in_fork(serve) == "served"
    assert ours.recv(100) == b"twice twice "
    assert shared.sum() == 7000
    ours.close(), theirs.close()


def test_the_rewards_of_the_project_load_where_nothing_can_be_opened() -> None:
    sources = [path.read_text() for path in resource_folder("envs").glob("*/rewards/*.py")]

    def load() -> bool:
        for source in sources:
            namespace: dict[str, object] = {}
            exec(compile(source, "<reward>", "exec"), namespace)
            assert callable(namespace["compute_reward"])
        return len(sources) > 30

    assert in_fork(load) == "True"


def test_what_is_loaded_before_a_fork_is_no_compiler() -> None:
    """Recording an observation's operations would import torch's, a second of every worker."""
    code = "import sys; from eureka_agent.worker.confinement import warm_up; warm_up()"
    code += "; print({'torch._dynamo', 'sympy'} & sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
