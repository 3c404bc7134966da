"""The project's profile of system calls: what it says on both architectures, and what it does to
real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import bpf_machine
import pytest

from eureka_agent.boundary import filters
from eureka_agent.boundary.filters import ALLOW, MOST_INSTRUCTIONS, refuse
from eureka_agent.boundary.profile import compile_profile, worker_profile
from eureka_agent.boundary.system_calls import ARCHITECTURES, KNOWN_NAMES, X86_64, Architecture
from eureka_agent.errors import WallError

needs_kernel = pytest.mark.skipif(not filters.available(), reason=str(filters.unavailable_reason()))
_FORBIDDEN = """socket connect bind listen accept accept4 sendmmsg ptrace process_vm_readv process_vm_writev process_madvise kcmp bpf keyctl add_key
    request_key io_uring_setup io_uring_enter io_uring_register userfaultfd perf_event_open unshare setns mount umount2 pivot_root chroot open_tree
    move_mount fsopen fsconfig fsmount fspick mount_setattr kexec_load kexec_file_load init_module finit_module delete_module open_by_handle_at
    name_to_handle_at pidfd_open pidfd_getfd pidfd_send_signal reboot swapon swapoff sethostname setdomainname settimeofday clock_settime
    clock_adjtime adjtimex syslog acct quotactl iopl ioperm modify_ldt mknod mknodat link linkat symlink symlinkat chown fchown lchown fchownat setuid
    setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset memfd_secret shmget shmat msgget semget mq_open inotify_init1
    fanotify_init vmsplice execveat io_setup set_mempolicy move_pages migrate_pages mbind vhangup lookup_dcookie uselib ustat sysfs nfsservctl
    setxattr removexattr rt_sigqueueinfo rt_tgsigqueueinfo landlock_create_ruleset mlockall sched_setscheduler sched_setattr setpriority"""
FORBIDDEN = _FORBIDDEN.split()
NEW_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
THREAD = 0x3D0F00
"""Flags that a C library's `pthread_create` passes to `clone`."""
HIGH = 1 << 32


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=lambda architecture: architecture.machine)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    assert isinstance(request.param, Architecture)
    return request.param


def action(architecture: Architecture, name: str, *arguments: int) -> int:
    program = compile_profile(worker_profile(), architecture)
    return bpf_machine.run(
        program, architecture.audit_number, architecture.numbers[name], arguments
    )


def test_what_has_no_place_in_a_worker_is_refused(architecture: Architecture) -> None:
    assert set(FORBIDDEN) <= KNOWN_NAMES
    names = [name for name in FORBIDDEN if name in architecture.numbers]
    assert {name for name in names if action(architecture, name) != refuse(1)} == set()
    assert len(compile_profile(worker_profile(), architecture)) // 8 < MOST_INSTRUCTIONS / 4


def test_arguments_decide(architecture: Architecture) -> None:
    cases: list[tuple[str, tuple[int, ...], int]] = [
        ("socketpair", (1, 1, 0, 0), ALLOW),
        *(
            ("socketpair", (family, 1, 0, 0), refuse(1))
            for family in (0, 2, 10, 16, 38, 40, 1 | HIGH)
        ),
        ("clone", (17,), ALLOW),
        ("clone", (THREAD,), ALLOW),
        *(("clone", (17 | flag,), refuse(1)) for flag in NEW_NAMESPACES),
        ("clone", (THREAD | 0x10000000 | HIGH,), refuse(1)),
        ("clone3", (), refuse(38)),
        ("personality", (0,), ALLOW),
        ("personality", (0xFFFFFFFF,), ALLOW),
        *(("personality", (flags,), refuse(1)) for flags in (0x400000, 0x40000, 8, 0x20000)),
        ("prctl", (38, 1), ALLOW),
        *(("prctl", (option,), refuse(1)) for option in (22, 35, 0x59616D61, 8, 24, 28, 47, 52)),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (1, 7), refuse(1)),
    ]
    for name, arguments, expected in cases:
        assert action(architecture, name, *arguments) == expected, (name, arguments)


def test_no_name_stands_in_it_twice_without_arguments() -> None:
    entries = json.loads(worker_profile().read_text())["syscalls"]
    plain = [name for entry in entries if not entry.get("args") for name in entry["names"]]
    with_arguments = {name for entry in entries if entry.get("args") for name in entry["names"]}
    assert len(plain) == len(set(plain))
    assert not with_arguments & set(plain)
    assert all(entry["comment"] for entry in entries)


def changed(tmp_path: Path, **top: Any) -> Path:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(json.loads(worker_profile().read_text()) | top))
    return path


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ({"flags": []}, "'flags'"),
        ({"defaultAction": "SCMP_ACT_LOG"}, "SCMP_ACT_LOG"),
        ({"archMap": [{"architecture": "SCMP_ARCH_S390X"}]}, "only for SCMP_ARCH_S390X"),
        ({"archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}]}, "subArchitectures"),
        ({"syscalls": [{"names": ["opne"], "action": "SCMP_ACT_ALLOW"}]}, "'opne'"),
        ({"syscalls": [{"names": ["open"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}}]}, "'includes'"),
        ({"syscalls": [{"names": ["open"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 9, "value": 1, "op": "SCMP_CMP_EQ"}]}]}, "argument of 0 to 5"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_an_error(tmp_path: Path, top: dict[str, Any], said: str) -> None:
    with pytest.raises(WallError, match=said):
        compile_profile(changed(tmp_path, **top), X86_64)


def test_files_that_are_no_profile(tmp_path: Path) -> None:
    with pytest.raises(WallError, match="cannot read"):
        compile_profile(tmp_path / "none", X86_64)
    (tmp_path / "broken").write_text("{")
    with pytest.raises(WallError, match="not a profile"):
        compile_profile(tmp_path / "broken", X86_64)


# ── real processes ────────────────────────────────────────────────────────────────────────────────

BEGIN = """
import os, sys
from eureka_agent.boundary import filters, profile
from eureka_agent.boundary.system_calls import current_architecture
filters.apply(profile.compile_profile(profile.worker_profile(), current_architecture()))
"""
PROBES = (
    BEGIN
    + """
import ctypes, json, socket, subprocess, threading
def error_of(work):
    try:
        work()
    except OSError as error:
        return error.errno
    return 0
libc = ctypes.CDLL(None, use_errno=True)
numbers = current_architecture().numbers
def raw(name, *arguments):
    return ctypes.get_errno() if libc.syscall(numbers[name], *map(ctypes.c_ulong, arguments)) == -1 else 0
families = {name: error_of(lambda: socket.socket(family)) for name, family in sorted(socket.AddressFamily.__members__.items())}
refused = {name: raw(name) for name in json.loads(sys.argv[1]) if name in numbers}
refused |= {"clone into a user namespace": raw("clone", 0x10000000 | 17, 0, 0, 0, 0), "personality": raw("personality", 0x40000)}
thread = threading.Thread(target=lambda: None)
thread.start(), thread.join()
ours, theirs = socket.socketpair()
child = os.fork()
if child == 0:
    os._exit(3)
worked = {"fork": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "program": subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout.decode()}
print(json.dumps({"families": families, "refused": refused, "worked": worked}))
"""
)


@needs_kernel
def test_a_process_under_it_opens_no_socket_and_does_what_a_worker_has_to() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROBES, json.dumps(FORBIDDEN)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = json.loads(ended.stdout)
    assert len(found["families"]) > 10
    assert set(found["families"].values()) == {1}
    assert {name: code for name, code in found["refused"].items() if code != 1} == {}
    assert found["worked"] == {"fork": 3, "program": "1\n"}


WORKER = (
    BEGIN
    + "os.execv(sys.executable, [sys.executable, '-P', '-m', 'eureka_agent.worker', '--scratch',"
    " sys.argv[1]])"
)
REWARD = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"


@needs_kernel
def test_a_worker_runs_under_it(tmp_path: Path) -> None:
    settings = {
        "env_steps": 128,
        "num_envs": 8,
        "horizon": 16,
        "hidden_sizes": [16],
        "epochs": 1,
        "checkpoints": 1,
    }
    reward = {"source": REWARD, "author": "given"}
    commands: list[dict[str, Any]] = [
        {"type": "open", "environment": "hopper", "task": "run"},
        {"type": "open", "environment": "cartpole", "task": "balance"},
        {"type": "dry_run", "job": "dry", "reward": reward, "timeout_s": 20.0},
        {"type": "prepare", "settings": settings, "slots": 1, "snapshot_s": 60.0},
        {"type": "train", "job": "training", "reward": reward, "seed": 0},
    ]
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        answers = []
        for command in commands:
            worker.stdin.write(json.dumps(command).encode() + b"\n")
            worker.stdin.flush()
            answers.append(json.loads(worker.stdout.readline()))
        worker.stdin.close()
        worker.stdout.read()
    assert [answer["type"] for answer in answers] == [
        "opened",
        "opened",
        "dry_run_done",
        "prepared",
        "progress",
    ], answers
    assert answers[2]["findings"] == []
    assert worker.returncode == 0
