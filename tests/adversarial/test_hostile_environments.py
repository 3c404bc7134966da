"""The wall by itself stops hostile code in the worker's own process, where no reward's filter is
around it.

The code belongs to an environment: it attacks when it is imported and writes the results into its
description. Attacks that end a worker come from a program under the very same options. The process
wall claims none of this and is not tested.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from conftest import Traps

from eureka_agent.boundary.bounds import MAX_LINE_BYTES
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox.bubblewrap_wall import BubblewrapWall, sandboxed
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.wall import Limits, Wall, WorkerHandle

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits(memory_bytes=2 << 30, scratch_bytes=8 << 20, processes=64, file_bytes=16 << 20)


ENVIRONMENT = """
import ctypes, errno, glob, json, os, socket, subprocess
import torch
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable

CANARY, PORT, DRIVER, OWN = {canary!r}, {port}, {driver}, {own!r}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def call(*arguments):
    if libc.syscall(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"

def keys():
    texts = [repr(dict(os.environ))]
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            texts.append(open(path, errors="replace").read())
        except OSError:
            pass
    if any("HOSTILE" in text or "canary" + "-secret" in text for text in texts):
        return "found"
    raise KeyError("none")

def mine_alone():
    others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) > 100]
    if others:
        return others
    raise LookupError("none")

def written():
    found = []
    for folder in ("/", "/etc", "/usr", "/usr/bin", "/bin", "/lib", "/var", "/home", "/root", "/opt", "/run", "/dev", "/sys", "/proc", os.path.dirname(torch.__file__), OWN):
        try:
            open(os.path.join(folder, "left-behind"), "w").close()
            found.append(folder)
        except OSError:
            pass
    if found:
        return found
    raise PermissionError("nowhere")

def runs_what_it_wrote():
    path = os.environ["TMPDIR"] + "/program"
    with open(path, "w") as file:
        file.write("#!/bin/true\\n")
    os.chmod(path, 0o755)
    return subprocess.run([path]).returncode

def kills(process):
    os.kill(process, 0)
    return "there"

def devices():
    for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/fuse", "/dev/kvm", "/dev/net/tun"):
        if os.path.exists(path):
            return open(path, "rb") and path
    raise FileNotFoundError("none")

ATTEMPTS = {{
    "reads a file of the person's": lambda: open(CANARY).read(),
    "writes a file of the person's": lambda: open(CANARY, "w").write("gone"),
    "sees the folder that it lies in": lambda: os.listdir(os.path.dirname(CANARY)),
    "reads passwords": lambda: open("/etc/shadow").read(),
    "finds a key of the driver's": keys,
    "sees processes of others": mine_alone,
    "reaches the driver's process": lambda: kills(DRIVER),
    "reads the driver's environment": lambda: open(f"/proc/{{DRIVER}}/environ").read(),
    "writes outside its scratch": written,
    "writes to the environment's own folder": lambda: open(OWN + "/env.py", "a").write("#"),
    "runs a program that it wrote": runs_what_it_wrote,
    "connects to the person's machine": lambda: socket.create_connection(("127.0.0.1", PORT), 1),
    "connects to the internet": lambda: socket.create_connection(("1.1.1.1", 53), 1),
    "makes a socket of AF_VSOCK": lambda: socket.socket(40, socket.SOCK_STREAM),
    "makes a socket of AF_ALG": lambda: socket.socket(38, 5),
    "makes a socket of AF_PACKET": lambda: socket.socket(17, 3),
    "makes a bare socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "talks to the engine": lambda: [s := socket.socket(socket.AF_UNIX), s.connect({engine!r})],
    "becomes root": lambda: os.setuid(0),
    "makes namespaces": lambda: call(272, 0x10000000),
    "mounts": lambda: call(165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "changes the root": lambda: os.chroot("/tmp"),
    "makes a device": lambda: os.mknod(os.environ["TMPDIR"] + "/disk", 0o600 | 0o060000, os.makedev(8, 0)),
    "asks for io_uring": lambda: call(425, 8, ctypes.create_string_buffer(256)),
    "loads a program into the kernel": lambda: call(321, 0, 0, 0),
    "reads keys of the kernel": lambda: call(250, 0, -3, 1),
    "traces its parent": lambda: call(101, 16, os.getppid() or 1, 0, 0),
    "watches performance counters": lambda: call(298, 0, 0, -1, -1, 0),
    "reboots": lambda: call(169, 0xFEE1DEAD, 672274793, 0x1234, 0),
    "changes the kernel's settings": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
    "triggers the kernel": lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY),
    "leaves its control group": lambda: [open(path, "w").write("0") for path in glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True)][0],
    "raises its limits": lambda: __import__("resource").setrlimit(7, (1 << 20, 1 << 20)),
    "opens devices": devices,
}}
CAME_OF_IT = {{}}
for name, attempt in ATTEMPTS.items():
    try:
        CAME_OF_IT[name] = "GOT " + str(attempt())[:80]
    except Exception as error:
        CAME_OF_IT[name] = type(error).__name__

class Hostile(VecTask):
    variables = (Variable("height", (), "m", "world", "height"),)
    num_observations, num_actions, max_episode_length, control_dt = 1, 1, 100, 0.1

    def pre_physics_step(self, actions):
        pass

    def compute_observations(self):
        self.obs_buf[:, 0] = self.actions[:, 0]

    def compute_variables(self):
        return {{"height": self.obs_buf[:, 0]}}

    def reset_idx(self, env_ids):
        pass

Hostile.__doc__ = "RESULT" + json.dumps(CAME_OF_IT)
"""
TASK = """
from eureka_agent.task import Task

def fitness(height):
    return height

task = Task(sentence="rise", fitness=fitness, fitness_doc="height")
"""
NAMES = [
    line.split('"')[1]
    for line in ENVIRONMENT.splitlines()
    if line.startswith('    "') and '": ' in line
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def came_of_it(
    holding: Wall, traps: Traps, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Results of the environment's attacks, behind one wall."""
    own = tmp_path_factory.mktemp("environment")
    (own / "tasks").mkdir()
    (own / "tasks" / "rise.py").write_text(TASK)
    engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    text = ENVIRONMENT.format(
        canary=str(traps.canary), port=traps.port, driver=os.getpid(), own=str(own), engine=engine
    )
    (own / "env.py").write_text(text)
    runner = DryRunner(holding, Problem(str(own)), tmp_path_factory.mktemp("scratch"), 5.0, LIMITS)
    try:
        description = await runner.start()
    finally:
        await runner.close()
    traps.check()
    assert (own / "env.py").read_text() == text
    found: dict[str, str] = json.loads(
        (description.doc + description.details).partition("RESULT")[2]
    )
    return found


@pytest.mark.parametrize("name", NAMES)
async def test_an_environment(name: str, came_of_it: dict[str, str], holding: Wall) -> None:
    if name == "runs a program that it wrote" and isinstance(holding, BubblewrapWall):
        pytest.skip(
            "bubblewrap's folders in memory cannot be mounted without the right to execute, and it"
            " claims nothing of it"
        )
    assert not came_of_it[name].startswith("GOT")


# ── what ends a worker, or would ──────────────────────────────────────────────────────────────────


class Program:
    """A program other than the worker, behind the unchanged wall."""

    def __init__(self, wall: Wall, folder: Path) -> None:
        self._wall = wall
        self._folder = folder

    async def run(
        self, script: str, limits: Limits = LIMITS, timeout_s: float = 30.0
    ) -> tuple[str, int]:
        """The program's output and exit status. It is killed at the end of its time."""
        script = textwrap.dedent(script)
        if isinstance(self._wall, BubblewrapWall):
            with sandboxed([sys.executable, "-P", "-c", script], limits) as (command, descriptors):
                process = await asyncio.create_subprocess_exec(
                    *command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=descriptors, cwd="/",
                    env={"PATH": os.defpath}, start_new_session=True,
                )  # fmt: skip
                try:
                    output, _ = await asyncio.wait_for(process.communicate(), timeout_s)
                except TimeoutError:
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.communicate()  # to the end, which closes the pipe
                    return "TIMEOUT", -signal.SIGKILL
            return output.decode(errors="replace"), process.returncode or 0
        from eureka_agent.sandbox.docker.wall import DockerWall

        class ScriptWall(DockerWall):
            def _options(self, *given: Any) -> dict[str, Any]:
                return super()._options(*given) | {"command": ["-c", script]}

        wall = ScriptWall()
        handle: WorkerHandle = await wall.start(self._folder, limits)
        pieces = []
        try:
            async with asyncio.timeout(timeout_s):
                while data := await handle.read(1 << 16):
                    pieces.append(data)
                status = await handle.wait()
        except TimeoutError:
            return "TIMEOUT", -signal.SIGKILL
        finally:
            await wall.kill(handle)
        return b"".join(pieces).decode(errors="replace"), status


@pytest.fixture
def program(holding: Wall, tmp_path: Path) -> Program:
    return Program(holding, tmp_path)


async def test_a_fork_bomb_of_a_program_stops(program: Program, holding: Wall) -> None:
    if isinstance(holding, BubblewrapWall):
        pytest.skip(
            "of bubblewrap the worker's own limits, and a control group: see test_bubblewrap_wall"
        )
    said, _ = await program.run("""
        import os, time
        count = 0
        try:
            while count < 500:
                if os.fork() == 0:
                    time.sleep(60)
                count += 1
        except OSError:
            pass
        print(count, flush=True)
        os._exit(0)
    """)
    assert 0 < int(said) < 64


async def test_shared_memory_is_full_at_its_size(program: Program) -> None:
    said, _ = await program.run("""
        size = 0
        try:
            with open("/dev/shm/x", "wb", buffering=0) as file:
                while size < 1 << 30:
                    size += file.write(bytes(1 << 20))
        except OSError:
            pass
        print(size)
    """)
    assert int(said) <= 64 << 20


@pytest.mark.parametrize("folder", ["/tmp", "/scratch"])
async def test_many_small_files_are_bounded(program: Program, folder: str) -> None:
    said, _ = await program.run(f"""
        import os
        size = 0
        try:
            for index in range(1000):
                with open("{folder}/" + str(index), "wb", buffering=0) as file:
                    size += file.write(bytes(1 << 20))
        except OSError:
            pass
        print(size)
    """)
    assert int(said) <= (8 << 20 if folder == "/scratch" else 64 << 20)


async def test_a_link_out_of_the_scratch_leads_nowhere(program: Program, traps: Traps) -> None:
    said, _ = await program.run(f"""
import os
try:
    os.symlink({str(traps.canary)!r}, "/scratch/link")
    print("GOT", open("/scratch/link").read())
except OSError as error:
    print(type(error).__name__)
""")
    assert said in ("FileNotFoundError\n", "PermissionError\n")


async def test_one_that_takes_no_signal_is_killed(program: Program) -> None:
    began = time.monotonic()
    said, status = await program.run(
        """
        import os, signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        for _ in range(3):
            os.fork()
        while True:
            pass
        """,
        timeout_s=1.0,
    )
    assert (said, status) == ("TIMEOUT", -signal.SIGKILL)
    assert time.monotonic() - began < 15


async def test_signals_to_everybody_reach_nobody_outside(program: Program) -> None:
    canary = subprocess.Popen(["sleep", "60"])
    try:
        await program.run(
            "import os, signal\nsignal.signal(15, signal.SIG_IGN)\nfor n in (15, 9):\n   "
            " os.kill(-1, n)",
            timeout_s=5.0,
        )
        assert canary.poll() is None
    finally:
        canary.kill()
        canary.wait()


# ── a worker whose environment speaks for it ──────────────────────────────────────────────────────

SPEAKS = '''"""It takes the worker's place."""
import json, os
ways = []
for d in range(3, 64):
    try:
        os.lseek(d, 0, 1)
    except OSError as error:
        if error.errno == 29:
            ways.append(d)
def say(data):
    for d in ways:
        try:
            while data:
                data = data[os.write(d, data):]
            return
        except OSError:
            pass
'''


@pytest.fixture
def speaks(holding: Wall, tmp_path: Path) -> Callable[[str], Any]:
    """Opens an environment that writes into the protocol."""

    async def open_it(code: str, timeout_s: float = 30.0) -> str:
        own = tmp_path / "environment"
        (own / "tasks").mkdir(parents=True)
        (own / "tasks" / "rise.py").write_text(TASK)
        (own / "env.py").write_text(SPEAKS + textwrap.dedent(code))
        client = await WorkerClient.start(holding, tmp_path / "scratch", LIMITS, str(own))
        try:
            with pytest.raises(EurekaError) as caught:
                await client.open(str(own), None, timeout_s=timeout_s)
            assert not client.alive
        finally:
            await client.close()
        assert list((tmp_path / "scratch").iterdir()) == []
        return caught.value.message

    return open_it


async def test_its_words_are_no_commands_to_a_terminal(speaks: Callable[[str], Any]) -> None:
    said = await speaks(
        "say(json.dumps({'type': 'fault', 'job': None, 'message': '\\x1b[2J' * 100_000}).encode() +"
        " b'\\n')\nos._exit(0)"
    )
    assert "\x1b" not in said
    assert len(said) < 50_000


async def test_a_line_without_end_is_a_violation(speaks: Callable[[str], Any]) -> None:
    said = await speaks(f"while True:\n    say(b'x' * {MAX_LINE_BYTES // 8})")
    assert "too long" in said


async def test_a_standard_error_without_end_is_bounded(
    holding: Wall, speaks: Callable[[str], Any], tmp_path: Path
) -> None:
    """The largest file here has 16 MiB. The Docker wall kills a worker that writes more than it
    takes."""
    said = await speaks(
        "import time\nfor _ in range(100):\n    try:\n        os.write(2, bytes(1 << 20))\n   "
        " except OSError:\n        break\nos._exit(3)"
    )
    assert len(said) < 100_000
