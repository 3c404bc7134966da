"""Walls and the client, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_environments import write_lift
from script_wall import ScriptWall

from eureka_agent.boundary.events import Prepared
from eureka_agent.errors import WorkerDiedError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox import process_wall
from eureka_agent.sandbox.bubblewrap_wall import unavailable_reason
from eureka_agent.sandbox.choose import open_wall
from eureka_agent.sandbox.client import WorkerClient, absolute_reference
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import FLOOD_BYTES, KEPT_BYTES
from eureka_agent.sandbox.worker_environment import worker_environment

ProcessesOf = Callable[[Path], list[int]]
WaitUntil = Callable[[Callable[[], bool], float], bool]


def test_a_set_of_names_has_one_order_in_every_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = set()
    for seed in "123":
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        command = [sys.executable, "-P", "-c", "print([*{'torso', 'hip', 'knee', 'ankle', 'toe'}])"]
        environment = worker_environment(tmp_path, "test", None)
        orders.add(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    assert len(orders) == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("print('hello')", "not an event: b'hello"),
        ('print(\'{"type": "prepared", "more": 1}\')', "not an event"),
        ("import sys; sys.stdout.write('x' * (33 << 20)); sys.stdout.flush(); input()", "too long"),
        ("import sys; sys.exit(7)", "exit status 7"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os, time; os.close(1); time.sleep(60)", "SIGKILL"),
    ],
)
async def test_a_worker_that_breaks_the_protocol_is_killed_and_reported(
    tmp_path: Path, processes_of: ProcessesOf, script: str, said: str
) -> None:
    client = await WorkerClient.start(ScriptWall(script), tmp_path)
    try:
        with pytest.raises(WorkerDiedError) as caught:
            await client.receive(20.0)
        assert said in caught.value.message
        assert not client.alive
        assert processes_of(tmp_path) == []
        with pytest.raises(WorkerDiedError):  # and again, for whoever asks next
            await client.receive(1.0)
    finally:
        await client.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_worker_that_floods_its_standard_error_is_killed_and_fills_no_disk(
    tmp_path: Path,
) -> None:
    script = "import os\nwhile True: os.write(2, b'a line\\n' * 10_000)"
    client = await WorkerClient.start(ScriptWall(script), tmp_path)
    try:
        with pytest.raises(WorkerDiedError) as caught:
            await client.receive(60.0)
        assert "SIGKILL" in caught.value.message
        assert f"more than {FLOOD_BYTES >> 20} MiB to standard error" in caught.value.message
        assert caught.value.message.count("a line") <= KEPT_BYTES // len("a line\n")
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    finally:
        await client.close()


async def test_a_worker_that_never_answers_is_killed_by_the_clock(
    tmp_path: Path, processes_of: ProcessesOf
) -> None:
    client = await WorkerClient.start(ScriptWall("import time; time.sleep(60)"), tmp_path)
    with pytest.raises(WorkerDiedError, match=r"took longer than 0\.3 s"):
        await client.open("cartpole", None, timeout_s=0.3)
    assert processes_of(tmp_path) == []
    await client.close()


async def test_a_worker_sees_no_key_and_dies_with_what_it_started(
    tmp_path: Path,
    processes_of: ProcessesOf,
    workers_of: ProcessesOf,
    wait_until: WaitUntil,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("SOME_TOKEN_NOBODY_THOUGHT_OF", "hush")
    client = await WorkerClient.start(ProcessWall(), tmp_path)
    try:
        # a started process gets its own command line a moment later
        assert wait_until(lambda: len(workers_of(tmp_path)) == 1, 10.0)
        (worker,) = workers_of(tmp_path)
        environment = Path(f"/proc/{worker}/environ").read_bytes()
        assert b"sk-very-secret" not in environment
        assert b"hush" not in environment
        assert os.getsid(worker) == worker != os.getsid(0)
        assert (await client.open("cartpole", None)).description.environment == "cartpole"
    finally:
        await client.close()
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


DRIVER = """
import asyncio, sys
from pathlib import Path
from eureka_agent.designer.interface import given_reward
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem

async def main():
    dry_runner = DryRunner(choose_wall("auto"), Problem("cartpole"), Path(sys.argv[1]), 600.0)
    reward = given_reward("def compute_reward(actions):\\n    while True:\\n        pass")
    await dry_runner.dry_run(reward)

asyncio.run(main())
"""


def test_workers_die_with_a_driver_that_is_killed_whatever_they_are_at(
    tmp_path: Path, processes_of: ProcessesOf, wait_until: WaitUntil
) -> None:
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)]) as driver:
        # the worker, which waits for its fork and reads no command, its nursery, and the fork in
        # its endless loop
        there = wait_until(lambda: len(processes_of(tmp_path)) == 3, 60.0)
        driver.send_signal(signal.SIGKILL)
    assert there
    assert wait_until(lambda: not processes_of(tmp_path), 5.0)


async def test_a_cancelled_start_leaves_no_process(
    tmp_path: Path, processes_of: ProcessesOf
) -> None:
    dry_runner = DryRunner(ProcessWall(), Problem("cartpole"), tmp_path)
    task = asyncio.create_task(dry_runner.start())
    while not processes_of(tmp_path):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_of(tmp_path) == []


def test_a_folder_is_named_absolutely_and_a_built_in_name_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cartpole", "mine"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert absolute_reference("mine") == str(tmp_path / "mine")
    assert absolute_reference("./cartpole") == str(tmp_path / "cartpole")
    assert absolute_reference("cartpole") == "cartpole"
    assert absolute_reference("gymnasium:ALE/Pong-v5") == "gymnasium:ALE/Pong-v5"
    assert absolute_reference("nothing") == "nothing"
    assert absolute_reference("~nobody-of-this-name/mine") == str(
        tmp_path / "~nobody-of-this-name" / "mine"
    )


@pytest.mark.parametrize(
    "name", [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap", "process"]
)
async def test_a_worker_reads_what_environments_share(name: str, tmp_path: Path) -> None:
    if name == "bubblewrap" and (reason := unavailable_reason()) is not None:
        pytest.skip(f"no bubblewrap: {reason}")
    roof = ("self.height > 5.0", "self.height > ROOF")
    imported = ("import torch\n", "import torch\n\nfrom .house import ROOF\n")
    folder = write_lift(tmp_path / "mine" / "lift", roof, imported)
    (tmp_path / "mine" / "_shared").mkdir()
    (tmp_path / "mine" / "_shared" / "house.py").write_text("ROOF = 5.0\n")
    dry_runner = DryRunner(open_wall(name), Problem(str(folder)), tmp_path / "scratch")
    try:
        await dry_runner.start()
        assert "../_shared/house.py" in dry_runner.description.files
    finally:
        await dry_runner.close()


async def test_a_cancellation_that_comes_together_with_an_event_is_not_lost(tmp_path: Path) -> None:
    """A pool that is closed would wait for ever for a worker that serves on."""
    client = await WorkerClient.start(ScriptWall("input()"), tmp_path)
    cancelled = 0
    try:
        for turns in range(6):  # of the event loop, between the event and the cancellation
            task = asyncio.create_task(client.receive(20.0))
            for _ in range(4):
                await asyncio.sleep(0)
            client._reader._events.put_nowait((Prepared(), 0))
            for _ in range(turns):
                await asyncio.sleep(0)
            if task.cancel():
                cancelled += 1
                with pytest.raises(asyncio.CancelledError):
                    await task
            while not client._reader._events.empty():
                client._reader._events.get_nowait()
    finally:
        await client.close()
    assert cancelled > 0


async def test_a_worker_that_is_gone_is_not_killed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours later, when its client is closed, its number may be another program's."""
    client = await WorkerClient.start(ScriptWall("pass"), tmp_path)
    with pytest.raises(WorkerDiedError):
        await client.receive(20.0)
    signalled = []
    monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append(group))
    await client.close()
    assert signalled == []


def leaves_one_behind(note: Path, then: str) -> str:
    """A script with a process that keeps its pipes outside its session, and writes down its
    number."""
    return f"""
    import os, time
    if os.fork() == 0:
        os.setsid()
        open({str(note)!r}, "w").write(str(os.getpid()))
        time.sleep(600)
    {then}
    """


async def test_a_worker_whose_pipes_somebody_holds_is_given_up_by_a_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process left its session, and its environment has no mark: nothing tells that it came
    from there."""
    monkeypatch.setattr(process_wall, "_KILL_SECONDS", 0.2)
    script = leaves_one_behind(tmp_path / "holds", "time.sleep(600)")
    client = await WorkerClient.start(ScriptWall(script), tmp_path / "scratch")
    while not (tmp_path / "holds").exists() or not (tmp_path / "holds").read_text():
        await asyncio.sleep(0.01)
    try:
        await asyncio.wait_for(client.kill(), 10)
        with pytest.raises(WorkerDiedError, match=r"was not gone after 0\.2 s"):
            await client.receive(10.0)
        await asyncio.wait_for(client.close(), 10)
        assert list((tmp_path / "scratch").iterdir()) == []
    finally:
        os.kill(int((tmp_path / "holds").read_text()), signal.SIGKILL)


async def test_a_worker_that_reads_nothing_of_a_file_is_killed(
    tmp_path: Path, workers_of: ProcessesOf
) -> None:
    """The sender would wait for ever: the worker has closed nothing, and no answer is due yet."""
    (tmp_path / "policy").write_bytes(b"x" * 1_000_000)
    client = await WorkerClient.start(ProcessWall(), tmp_path / "scratch")
    try:
        await client.open("cartpole", "balance")
        (process,) = workers_of(tmp_path)
        os.kill(process, signal.SIGSTOP)
        client.write_timeout_s = 0.3
        await asyncio.wait_for(client.give(tmp_path / "policy", "policy"), 10)
        with pytest.raises(WorkerDiedError, match="read nothing"):
            await client.receive(10.0)
    finally:
        await client.close()
