"""The Docker wall on a real engine: what a worker is, sees and may do inside, and how it ends."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.docker.engine import Engine
from eureka_agent.sandbox.docker.leftovers import list_containers
from eureka_agent.sandbox.docker.wall import DockerWall
from eureka_agent.sandbox.wall import FLOOD_BYTES, KEPT_BYTES, Limits
from eureka_agent.sandbox.worker_environment import readable_files

pytestmark = [pytest.mark.docker, pytest.mark.slow]

Run = Callable[..., Awaitable[tuple[Any, Any]]]
Output = Callable[[Any], Awaitable[bytes]]

OF_THE_ENGINE = {"hostname", "hosts", "mtab", "resolv.conf"}
"""Files that every engine writes for a container."""
SHOWN_OF_ETC = [path for path in readable_files(Limits()).bound if path.is_relative_to("/etc")]
LOOK = """
import ctypes, errno, json, os, resource, socket, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
def tries(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "written"
def size(path):
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize
def group(name):
    for path in (f"/sys/fs/cgroup/{name}",):
        if os.path.exists(path):
            return open(path).read().strip()
def connects():
    try:
        socket.create_connection(("1.1.1.1", 53), 3).close()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "connected"
def becomes_root():
    try:
        os.setuid(0)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "root"
mounts = [line.split()[1:4] for line in open("/proc/self/mounts")]
print(json.dumps({
    "ids": os.getresuid() + os.getresgid(), "groups": os.getgroups(), "pid": os.getpid(),
    "capabilities": [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privileges": status["NoNewPrivs"], "seccomp": status["Seccomp"],
    "writes": {path: tries(path) for path in ("/x", "/etc/x", "/etc/alternatives/x", "/usr/x", "/usr/bin/x", sys.prefix + "/x", sys.base_prefix + "/x", "/tmp/x", "/scratch/x", "/var/x")},
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]], "connects": connects(), "becomes_root": becomes_root(),
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_FSIZE")},
    "sizes": {path: size(path) for path in ("/tmp", "/scratch", "/dev/shm")},
    "group": {name: group(name) for name in ("memory.max", "memory.swap.max", "pids.max")},
    "mounts": {mount[0]: mount[2].split(",") for mount in mounts if mount[0] in ("/", "/tmp", "/scratch")},
    "environment": sorted(os.environ), "root": sorted(os.listdir("/")), "etc": sorted(os.listdir("/etc")), "home": os.environ["HOME"],
}))
"""


async def test_what_a_worker_is_inside(
    run_script: Run, all_output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    limits = Limits(
        memory_bytes=300 << 20,
        scratch_bytes=32 << 20,
        open_files=100,
        file_bytes=16 << 20,
        processes=20,
    )
    handle, wall = await run_script(LOOK, limits)
    output = await all_output(handle)
    assert await handle.wait() == 0, handle.last_words()
    found = json.loads(output)
    await wall.kill(handle)
    assert found["ids"] == [65534] * 6
    assert (found["groups"], found["pid"]) in (([], 1), ([65534], 1))
    assert found["capabilities"] == ["0" * 16] * 5
    assert (found["no_new_privileges"], found["seccomp"]) == ("1", "2")  # 2: a filter
    assert found["writes"] == {
        "/x": "EROFS",
        "/etc/x": "EROFS",
        "/etc/alternatives/x": "EROFS",
        "/usr/x": "EROFS",
        "/usr/bin/x": "EROFS",
        f"{sys.prefix}/x": "EROFS",
        f"{sys.base_prefix}/x": "EROFS",
        "/tmp/x": "written",
        "/scratch/x": "written",
        "/var/x": found["writes"]["/var/x"],
    }
    assert found["writes"]["/var/x"] != "written"
    assert found["interfaces"] == ["lo"]
    assert found["connects"] in ("ENETUNREACH", "EPERM", "EACCES", "EAFNOSUPPORT")
    assert found["becomes_root"] == "EPERM"
    assert found["limits"] == {
        "RLIMIT_NOFILE": [100, 100],
        "RLIMIT_CORE": [0, 0],
        "RLIMIT_FSIZE": [16 << 20, 16 << 20],
    }
    assert found["sizes"] == {"/tmp": 64 << 20, "/scratch": 32 << 20, "/dev/shm": 16 << 20}
    if found["group"]["memory.max"] is not None:  # control groups of version 2
        assert found["group"] == {
            "memory.max": str(300 << 20),
            "memory.swap.max": "0",
            "pids.max": "20",
        }
    assert "ro" in found["mounts"]["/"]
    for path in ("/tmp", "/scratch"):
        assert {"rw", "noexec", "nosuid", "nodev"} <= set(found["mounts"][path])
    assert not {"SOME_API_KEY", "DOCKER_HOST"} & set(found["environment"])
    shown = {path.parts[1] for path in readable_files(limits).bound}
    assert not {"work", "home", "root", "var", "run", "boot"} & set(found["root"]) - shown
    assert set(found["etc"]) <= OF_THE_ENGINE | {path.name for path in SHOWN_OF_ETC}


async def test_a_worker_opens_an_environment_and_makes_a_dry_run(
    wall: DockerWall, lines: Any, tmp_path: Path
) -> None:
    reward = (resource_folder("envs") / "cartpole" / "rewards" / "balance_human.py").read_text()
    handle = await wall.start(tmp_path, Limits())
    try:
        events = lines(handle)
        await handle.write(
            json.dumps({"type": "open", "environment": "cartpole", "task": "balance"}).encode()
            + b"\n"
        )
        opened = await events.next()
        assert (opened["type"], opened["description"]["environment"]) == ("opened", "cartpole")
        command = {
            "type": "dry_run",
            "job": "a",
            "reward": {"source": reward, "author": "environment", "trusted": True},
            "timeout_s": 20.0,
        }
        await handle.write(json.dumps(command).encode() + b"\n")
        done = await events.next()
        assert (done["type"], done["job"], done["findings"]) == ("dry_run_done", "a", [])
        await handle.write(b'{"type": "shutdown"}\n')
        assert await handle.wait() == 0
    finally:
        await wall.kill(handle)
    assert list(tmp_path.iterdir()) == []


async def test_an_environment_that_only_its_owner_may_read(
    run_script: Run, all_output: Output, tmp_path: Path
) -> None:
    environment = tmp_path / "mine"
    environment.mkdir(mode=0o700)
    (environment / "env.py").write_text("x = 1\n")
    (environment / "env.py").chmod(0o600)
    script = (
        f"import os\nprint(open({str(environment / 'env.py')!r}).read(),"
        f" os.statvfs({str(environment)!r}).f_flag & os.ST_RDONLY)"
    )
    handle, wall = await run_script(script, Limits(memory_bytes=1 << 29, readable=(environment,)))
    assert await all_output(handle) == b"x = 1\n 1\n"
    await wall.kill(handle)
    assert (environment / "env.py").stat().st_mode & 0o777 == 0o600


async def test_streams_are_byte_exact_in_both_directions(run_script: Run) -> None:
    script = (
        "import sys\nwhile data := sys.stdin.buffer.read1(1 << 16):\n   "
        " sys.stdout.buffer.write(data[::-1][::-1])\nsys.stdout.buffer.flush()"
    )
    handle, wall = await run_script(script)
    sent = os.urandom(1 << 20) * 24
    received = hashlib.sha256()
    count = 0

    async def collect() -> None:
        nonlocal count
        while count < len(sent) - (1 << 16):  # what its buffer holds comes at its end
            data = await handle.read(1 << 20)
            count += len(data)
            received.update(data)

    writer = asyncio.create_task(handle.write(sent))
    async with asyncio.timeout(60):
        await collect()
        await writer
    assert received.hexdigest() == hashlib.sha256(sent[:count]).hexdigest()
    await wall.kill(handle)
    assert handle.returncode == -signal.SIGKILL


async def test_a_flood_of_errors_ends_the_worker(run_script: Run, all_output: Output) -> None:
    handle, wall = await run_script("import os\nwhile True:\n    os.write(2, b'spam ' * 10000)")
    async with asyncio.timeout(60):
        assert await all_output(handle) == b""
        assert await handle.wait() == -signal.SIGKILL
    await wall.kill(handle)
    words = handle.last_words()
    assert f"more than {FLOOD_BYTES >> 20} MiB to standard error" in words
    assert len(words) < KEPT_BYTES + 200


async def test_kill_of_a_worker_that_ignores_everything(run_script: Run, engine: Engine) -> None:
    script = (
        "import os, signal, time\nfor number in range(1, 65):\n    try:\n       "
        " signal.signal(number, signal.SIG_IGN)\n    except (OSError, ValueError):\n       "
        " pass\nfor _ in range(5):\n    os.fork()\n    os.setsid() if os.getpid() != 1 else"
        " None\nos.write(1, b'x')\nos.close(1)\nos.close(2)\nwhile True:\n    time.sleep(1)"
    )
    handle, wall = await run_script(script)
    assert await handle.read(1) == b"x"
    began = time.monotonic()
    await wall.kill(handle)
    assert time.monotonic() - began < 10
    assert handle.returncode == -signal.SIGKILL
    await wall.kill(handle)
    names = [name for container in list_containers(engine) for name in container["Names"]]
    assert f"/{handle.name}" not in names
    with pytest.raises(ConnectionError):
        await handle.write(b"x")


async def test_the_first_process_takes_no_signal_from_inside(run_script: Run) -> None:
    handle, wall = await run_script(
        "import os, signal, time\nos.fork() or [os.kill(1, n) for n in (9, 19, 15)]\nos.write(1,"
        " b'x')\ntime.sleep(1)\nos.write(1, b'y')\ntime.sleep(60)"
    )
    received = b""
    while len(received) < 4:
        received += await handle.read(4)
    assert handle.returncode is None
    await wall.kill(handle)


async def test_too_much_memory_is_said_in_words(run_script: Run, all_output: Output) -> None:
    handle, wall = await run_script(
        "x = bytearray(1 << 30)\nprint(len(x))", Limits(memory_bytes=200 << 20)
    )
    assert await all_output(handle) == b""
    assert await handle.wait() == -signal.SIGKILL
    await wall.kill(handle)
    assert "took more memory than its 0.2 GiB" in handle.last_words()


async def test_a_start_that_is_given_up_leaves_no_container(
    run_script: Run, engine: Engine, wall: DockerWall, tmp_path: Path
) -> None:
    before = {container["Id"] for container in list_containers(engine)}
    began_s = time.monotonic()
    await wall.kill(await wall.start(tmp_path, Limits()))
    whole_s = time.monotonic() - began_s
    given_up = 0
    for share in (0.0, 0.05, 0.2, 0.4, 0.6):
        starting = asyncio.create_task(wall.start(tmp_path, Limits()))
        await asyncio.wait({starting}, timeout=share * whole_s)
        if starting.cancel():
            given_up += 1
            with pytest.raises(asyncio.CancelledError):
                await starting
        else:  # this engine was quicker this time
            await wall.kill(starting.result())
    assert given_up > 0
    assert (
        not {
            c["Id"]
            for c in list_containers(engine)
            if f'"pid": "{os.getpid()}"' in str(c["Labels"])
        }
        - before
    )


DRIVER = """
import asyncio, sys
from pathlib import Path
from eureka_agent.sandbox.docker.wall import DockerWall
from eureka_agent.sandbox.wall import Limits

async def main():
    handle = await DockerWall().start(Path(sys.argv[1]), Limits())
    print(handle.name, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_the_next_command_cleans_up_after_a_driver_that_was_killed(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = tmp_path / "own"
    own.mkdir()
    command = [sys.executable, "-m", "eureka_agent.cli.main", "--version"]

    def containers() -> list[str]:
        return [found["Names"][0].lstrip("/") for found in list_containers(engine)]

    def said_after_a_kill() -> str:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(own)], stdout=subprocess.PIPE, text=True
        )
        assert driver.stdout is not None
        name = driver.stdout.readline().strip()
        assert name in containers()
        assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
        assert name in containers()  # its driver lives
        driver.kill()
        driver.wait()
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert name not in containers()
        return result.stderr

    # another test's command on the same engine may have come first
    assert any(
        "removed 1 container of a search that was killed" in said_after_a_kill() for _ in range(3)
    )
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


async def test_a_kill_ends_although_the_engine_hangs(run_script: Run, engine: Engine) -> None:
    """The engine itself cannot be stopped here: it is everybody's. A socket that swallows all
    requests stands in for it."""
    handle, wall = await run_script("import time\ntime.sleep(60)")
    good = engine.client.api.timeout
    adapter = engine.client.api._custom_adapter
    path = adapter.socket_path
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(f"{folder}/docker.sock")
        listener.listen()
        adapter.socket_path, engine.client.api.timeout = f"{folder}/docker.sock", 0.5
        adapter.pools.clear()
        try:
            began = time.monotonic()
            await wall.kill(handle)
            assert time.monotonic() - began < 10
        finally:
            adapter.socket_path, engine.client.api.timeout = path, good
            adapter.pools.clear()
    assert handle.returncode is not None
    assert "gives no answer" in handle.last_words()
    await wall.kill(handle)  # once it answers again
    assert f"/{handle.name}" not in [
        name for container in list_containers(engine) for name in container["Names"]
    ]
