"""The bubblewrap wall, from inside: what code there sees, writes and starts. Real sandboxes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import string
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from eureka_agent.errors import WallError
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.bubblewrap_wall import (
    BubblewrapHandle,
    BubblewrapWall,
    ControlGroup,
    sandboxed,
    unavailable_reason,
)
from eureka_agent.sandbox.wall import Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import SCRATCH, worker_environment

REASON = unavailable_reason()
REQUIRED = os.environ.get("EUREKA_REQUIRE_DOCKER") == "1"
pytestmark = pytest.mark.skipif(
    REASON is not None and not REQUIRED, reason=f"no bubblewrap: {REASON}"
)
TIME_ZONE = f"TEST{''.join(random.choices(string.ascii_uppercase, k=12))}0"
SECRET = "sk-a-secret-of-the-person"
GROUPED = BubblewrapWall()._grouped if REASON is None else False
LIMITS = Limits(memory_bytes=3 << 30, scratch_bytes=8 << 20, processes=64)


@pytest.fixture(autouse=True)
def there() -> None:
    if REASON is not None:
        pytest.fail(f"bubblewrap is required here: {REASON}")


def inside(code: str, limits: Limits = LIMITS, *arguments: str) -> Any:
    """JSON that a program behind the wall prints."""
    with sandboxed([sys.executable, "-P", "-c", textwrap.dedent(code), *arguments], limits) as (
        command,
        descriptors,
    ):
        ended = subprocess.run(
            command,
            env=worker_environment(SCRATCH, "test", None),
            capture_output=True,
            text=True,
            pass_fds=descriptors,
            cwd="/",
            timeout=60,
        )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


# ── what is seen ──────────────────────────────────────────────────────────────────────────────────


def test_files_of_the_host_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "private").write_text(SECRET)
    checkout = Path(__file__).resolve().parents[2]
    paths = [
        Path(f"/{name}") for name in ("etc/passwd", "etc/ssh", "var", "run", "sys/fs", "dev/mem")
    ]
    paths += [tmp_path, tmp_path / "private", Path(__file__), checkout / ".git", checkout / "docs"]
    paths += [
        each for each in Path.home().iterdir() if not Path(sys.base_prefix).is_relative_to(each)
    ]
    paths += [resource_folder("prompts")]
    code = (
        "import json, os, sys; print(json.dumps([path for path in sys.argv[1:] if"
        " os.path.lexists(path)]))"
    )
    assert inside(code, LIMITS, *map(str, paths)) == []
    assert [path for path in paths if os.path.lexists(path)] != []


def test_there_is_no_network_and_no_socket() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        found = inside(
            """
            import json, socket, sys
            def error_of(work):
                try:
                    work()
                    return 0
                except OSError as error:
                    return error.errno
            families = [error_of(lambda: socket.socket(family)) for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 40)]
            devices = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
            print(json.dumps([families, error_of(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)), devices]))
            """,
            LIMITS,
            str(listening.getsockname()[1]),
        )
    assert found[0] == [1, 1, 1, 1]
    assert found[1] != 0
    assert set(found[2]) <= {"lo"}


def test_it_has_no_powers_and_gets_none() -> None:
    found = inside("""
        import ctypes, json, os
        libc = ctypes.CDLL(None, use_errno=True)
        status = {line.partition(":")[0]: line.partition(":")[2].strip() for line in open("/proc/self/status")}
        print(json.dumps([status["CapEff"], status["CapBnd"], status["NoNewPrivs"], status["Seccomp"], libc.unshare(0x10000000), os.getuid(), os.uname().nodename]))
        """)
    assert [int(found[0], 16), int(found[1], 16), *found[2:]] == [
        0,
        0,
        "1",
        "2",
        -1,
        65534,
        "worker",
    ]


# ── what is written ───────────────────────────────────────────────────────────────────────────────


def test_only_the_scratch_and_temporary_folders_can_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text("original")
    found = inside(
        """
        import json, os, sys
        written, own = [], os.stat("/tmp").st_dev
        for top in ["/", *sys.argv[1:]]:
            for folder, folders, files in os.walk(top):
                if folder.startswith("/proc") or folder.count("/") > 5:
                    folders.clear()
                    continue
                try:
                    open(os.path.join(folder, "new"), "w").close()
                    written.append("/tmp" if os.stat(folder).st_dev == own else folder)
                except OSError:
                    pass
        try:
            open(sys.argv[1] + "/env.py", "w").close()
            written.append("env.py")
        except OSError:
            pass
        print(json.dumps(sorted(set(written))))
        """,
        Limits(readable=(tmp_path,)),
        str(tmp_path),
    )
    # the worker's own /tmp has folders in it that lead to those which it may read: of this test, of
    # the program
    assert found == ["/scratch", "/tmp"]
    assert not (tmp_path.parent / "new").exists()
    assert (tmp_path / "env.py").read_text() == "original"
    assert list(tmp_path.iterdir()) == [tmp_path / "env.py"]


# ── ways to Python ────────────────────────────────────────────────────────────────────────────────

STARTED_BY = """
import subprocess, sys
from eureka_agent.sandbox.bubblewrap_wall import sandboxed, unavailable_reason
from eureka_agent.sandbox.wall import Limits
from eureka_agent.sandbox.worker_environment import SCRATCH, worker_environment
assert unavailable_reason() is None, unavailable_reason()
program = [sys.executable, "-P", "-c", "import eureka_agent.task, my_module; print(my_module.ANSWER)"]
with sandboxed(program, Limits()) as (command, descriptors):
    environment = worker_environment(SCRATCH, "test", None)
    subprocess.run(command, env=environment, pass_fds=descriptors, cwd="/", check=True, timeout=60)
"""


def virtual_environment(folder: Path, home: Path | str) -> Path:
    """Made of links as venv makes it, from an interpreter that is named `<home>/bin/python…`."""
    site_packages = Path(pytest.__file__).parents[1]
    base = Path(os.path.realpath(sys.executable))
    packages = folder / site_packages.relative_to(sys.prefix)
    packages.parent.mkdir(parents=True)
    packages.symlink_to(site_packages)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(f"{home}/bin/{base.name}")
    (folder / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    return folder / "bin" / "python"


@pytest.mark.parametrize("middle", [True, False], ids=["link in the middle", "dots after a link"])
def test_it_starts_by_whatever_way_python_was_found(tmp_path: Path, middle: bool) -> None:
    current, me = tmp_path / "versions" / "current", tmp_path / "home" / "me"
    current.parent.mkdir()
    current.symlink_to(Path(os.path.realpath(sys.executable)).parents[1])
    (tmp_path / "disk" / "me" / "modules").mkdir(parents=True)
    (tmp_path / "home").symlink_to("disk")
    (me / "modules" / "my_module.py").write_text("ANSWER = 42")
    python = virtual_environment(me / "venv", current if middle else f"{me}/../../versions/current")
    modules = f"{me}/modules" if middle else f"{me}/modules/../modules"
    paths = f"{Path(__file__).resolve().parents[2]}:{modules}"
    ended = subprocess.run(
        [python, "-c", STARTED_BY],
        env={**os.environ, "PYTHONPATH": paths, "HOME": str(me)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["42"]


def test_a_link_to_the_whole_home_folder_shows_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "secret").write_text(SECRET)
    (tmp_path / "link").symlink_to(tmp_path / "me")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/link:{tmp_path}/link/x/..")
    code = (
        "import json, os, sys; print(json.dumps([os.path.exists(each) for each in sys.argv[1:]]))"
    )
    assert inside(code, LIMITS, f"{tmp_path}/link/secret", f"{tmp_path}/me/secret") == [
        False,
        False,
    ]


# ── workers ───────────────────────────────────────────────────────────────────────────────────────

REWARD = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
HOSTILE = '''"""An environment whose module tries what its argument says, before anything else: it is not confined as a reward is."""
import json, os, sys, threading, time
{body}
'''


class Talk:
    """A worker by its raw streams."""

    def __init__(self, handle: WorkerHandle) -> None:
        self.handle = handle
        self._buffer = b""

    async def ask(self, **command: Any) -> dict[str, Any]:
        await self.handle.write(json.dumps(command).encode() + b"\n")
        return await asyncio.wait_for(self.answer(), 60)

    async def answer(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            data = await self.handle.read(1 << 16)
            assert data, f"the worker ended: {self.handle.last_words()}"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        found = json.loads(line)
        assert isinstance(found, dict)
        return found


def processes_behind_a_wall() -> set[int]:
    """Processes of this test, found by a variable that walls pass on. Other tests may run beside
    it."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TZ={TIME_ZONE}".encode() in entry.read_bytes().split(b"\0"):
                found.add(int(entry.parent.name))
        except OSError:
            continue
    return found


def groups_made(monkeypatch: pytest.MonkeyPatch) -> list[ControlGroup]:
    """Control groups that this test makes from now on. Other tests make some beside it."""
    groups: list[ControlGroup] = []
    make = ControlGroup.make

    def make_and_keep(limits: Limits) -> ControlGroup | None:
        group = make(limits)
        groups.extend([group] if group else [])
        return group

    monkeypatch.setattr(ControlGroup, "make", make_and_keep)
    return groups


@pytest_asyncio.fixture
async def started(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    wall = BubblewrapWall()
    handles: list[WorkerHandle] = []

    async def start(limits: Limits = LIMITS) -> Talk:
        folder = tmp_path / f"worker-{len(handles)}"
        folder.mkdir()
        handles.append(await wall.start(folder, limits))
        return Talk(handles[-1])

    yield start
    for handle in handles:
        await wall.kill(handle)


async def test_a_worker_opens_dry_runs_and_trains(
    started: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", TIME_ZONE)
    talk = await started(Limits(memory_bytes=4 << 30, scratch_bytes=64 << 20))
    opened = await talk.ask(type="open", environment="cartpole", task="balance")
    assert opened["type"] == "opened"
    reward = {"source": REWARD, "author": "given"}
    dry = await talk.ask(type="dry_run", job="dry", reward=reward, timeout_s=20.0)
    assert (dry["type"], dry["findings"]) == ("dry_run_done", [])
    settings = {
        "env_steps": 128,
        "num_envs": 8,
        "horizon": 16,
        "hidden_sizes": [16],
        "epochs": 1,
        "checkpoints": 1,
    }
    assert (await talk.ask(type="prepare", settings=settings, slots=1, snapshot_s=60.0))[
        "type"
    ] == "prepared"
    assert (await talk.ask(type="train", job="training", reward=reward, seed=0))[
        "type"
    ] == "progress"
    assert talk.handle.returncode is None
    # its folder has its last words alone
    assert list((tmp_path / "worker-0").iterdir()) == []
    running = processes_behind_a_wall()
    assert len(running) >= 2

    began = time.monotonic()
    await BubblewrapWall().kill(talk.handle)
    assert time.monotonic() - began < 5.0
    assert not processes_behind_a_wall() & running
    assert talk.handle.returncode == -signal.SIGKILL
    assert isinstance(talk.handle, BubblewrapHandle)
    assert talk.handle.group is None or not any(
        folder.exists() for folder in talk.handle.group.folders
    )


def hostile_environment(folder: Path, body: str) -> Path:
    folder.mkdir()
    (folder / "env.py").write_text(HOSTILE.format(body=textwrap.dedent(body)))
    (folder / "tasks").mkdir()
    return folder


async def test_a_worker_that_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = BubblewrapWall()
    groups = groups_made(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WallError, match="bwrap"):
        await wall.start(tmp_path, LIMITS)
    assert len(groups) == GROUPED
    assert [folder for group in groups for folder in group.folders if folder.exists()] == []


@pytest.mark.parametrize("moment", [0, 1, 5])
async def test_a_start_that_is_given_up_leaves_no_group_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """This holds at any moment: before bwrap has begun a second process, or while it makes
    namespaces for it."""
    monkeypatch.setenv("TZ", TIME_ZONE)
    wall = BubblewrapWall()
    groups = groups_made(monkeypatch)
    starting = asyncio.create_task(wall.start(tmp_path, LIMITS))
    await asyncio.sleep(0)
    begun = [folder.exists() for group in groups for folder in group.folders]
    if moment:
        await asyncio.sleep(0)
        time.sleep(0.001 * moment)  # the loop stands still, bwrap does not
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20.0):
            await starting
    assert len(groups) == GROUPED
    assert all(begun)
    assert [folder for group in groups for folder in group.folders if folder.exists()] == []
    assert processes_behind_a_wall() == set()


def test_a_group_that_another_driver_has_just_made_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group belongs to a driver in another container, whose number is nobody's here. Only a
    group that is old and empty is removed."""
    if not GROUPED:
        pytest.skip("no control group can be made here")
    with monkeypatch.context() as another:
        another.setattr(os, "getpid", lambda: 1 << 30)
        theirs = ControlGroup.make(LIMITS)
    with monkeypatch.context() as earlier:
        earlier.setattr(time, "time", lambda: 1_000_000_000.0)
        left, entered = ControlGroup.make(LIMITS), ControlGroup.make(LIMITS)
    assert theirs is not None
    assert left is not None
    assert entered is not None
    own = None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        try:
            for folder in entered.folders:
                (folder / "cgroup.procs").write_text(str(process.pid))
            own = ControlGroup.make(LIMITS)
            assert not any(folder.exists() for folder in left.folders)
            assert all(folder.exists() for group in (theirs, entered) for folder in group.folders)
        finally:
            process.kill()
            process.wait()
            for group in (theirs, left, entered, own):
                if group is not None:
                    group.remove()


async def test_a_fork_bomb_stops_at_the_limit(started: Callable[..., Any], tmp_path: Path) -> None:
    if os.geteuid() == 0 and not GROUPED:
        pytest.skip(
            "as root the number of processes is limited by a control group alone, and none can be"
            " made here"
        )
    body = """
        count = 0
        try:
            while count < 5000:
                if os.fork() == 0:
                    time.sleep(600)
                count += 1
        except OSError as error:
            raise RuntimeError(f"stopped after {count} by {type(error).__name__}")
        """
    folder = hostile_environment(tmp_path / "bomb", body)
    talk = await started(Limits(memory_bytes=3 << 30, processes=64, readable=(folder,)))
    answer = await talk.ask(type="open", environment=str(folder), task="any")
    assert answer["type"] == "fault"
    said = json.dumps(answer)
    assert "BlockingIOError" in said
    assert int(said.split("stopped after ")[1].split()[0]) < 64


async def test_the_memory_of_many_processes_together_is_limited(
    started: Callable[..., Any], tmp_path: Path
) -> None:
    if not GROUPED:
        pytest.skip("no control group can be made here")
    body = """
        for _ in range(8):
            if os.fork() == 0:
                held = bytearray(256 << 20)
                for place in range(0, len(held), 4096):
                    held[place] = 1
                time.sleep(600)
        ended = [os.waitstatus_to_exitcode(os.wait()[1])]
        raise RuntimeError(f"ended by {ended}")
        """
    folder = hostile_environment(tmp_path / "eats", body)
    talk = await started(Limits(memory_bytes=1 << 30, readable=(folder,)))
    await talk.handle.write(
        json.dumps({"type": "open", "environment": str(folder), "task": "any"}).encode() + b"\n"
    )
    # the kernel ends one of them, or the worker itself
    data = await asyncio.wait_for(talk.handle.read(1 << 16), 60)
    assert not data or b"ended by [-9]" in data


DRIVER = """
import asyncio, sys
from pathlib import Path
from eureka_agent.sandbox.bubblewrap_wall import BubblewrapWall
from eureka_agent.sandbox.wall import Limits

async def main():
    handle = await BubblewrapWall().start(Path(sys.argv[1]), Limits(memory_bytes=3 << 30))
    await handle.write(b'{"type": "open", "environment": "cartpole", "task": "balance"}\\n')
    await handle.read(100)
    print("opened", flush=True)
    await handle.wait()

asyncio.run(main())
"""


def test_it_dies_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    environment = os.environ | {"TZ": TIME_ZONE}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"opened\n"
        running = processes_behind_a_wall()
        assert len(running) >= 2
        driver.kill()
    deadline = time.monotonic() + 10
    while processes_behind_a_wall() & running:
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ── where it does not work ────────────────────────────────────────────────────────────────────────


def test_no_program_is_a_reason_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install the package bubblewrap" in str(unavailable_reason())
    with pytest.raises(WallError, match="bwrap"), sandboxed(["true"], LIMITS):
        pass


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("bwrap: Creating new namespace failed: Operation not permitted", "user namespaces"),
        ("bwrap: Unknown option --disable-userns", "0.8 or newer"),
    ],
)
def test_what_bwrap_says_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, step: str
) -> None:
    """A program of this name that fails as the real one does on other machines."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    reason = str(unavailable_reason())
    assert said in reason
    assert step in reason
    assert "\n" not in reason
