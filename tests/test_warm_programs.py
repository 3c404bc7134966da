"""A program that is forked from a warm parent is what a started one is, as far as tests can see."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import warm_programs

from eureka_agent.sandbox.process_wall import ProcessHandle, ProcessWall
from eureka_agent.sandbox.wall import Limits

EUREKA = [sys.executable, "-m", "eureka_agent.cli.main"]


def said(folder: Path) -> list[tuple[int, str, str]]:
    """Status, output and errors of commands that look at the folder and at a variable, and of one that asks a
    worker."""
    found = []
    for arguments in (["runs"], ["show", "latest"], ["search", "x", "--env", "nope"], ["--nope"]):
        result = subprocess.run(
            [*EUREKA, *arguments],
            cwd=folder,
            env={**os.environ, "EUREKA_RUNS": "mine", "COLUMNS": "50"},
            capture_output=True,
            text=True,
        )
        found.append((result.returncode, result.stdout, result.stderr))
    return found


def test_a_forked_command_says_what_a_started_one_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked = said(tmp_path)
    monkeypatch.setattr(warm_programs.STARTS, "forking", False)
    assert said(tmp_path) == forked
    assert [status for status, _, _ in forked] == [0, 2, 2, 2]


@pytest.mark.parametrize("start", ["forked", pytest.param("real", marks=pytest.mark.real_starts)])
async def test_a_worker(start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    wall = ProcessWall()
    handle = await wall.start(
        tmp_path, Limits(open_files=99, cores=(min(os.sched_getaffinity(0)),))
    )
    assert isinstance(handle, ProcessHandle)
    process = handle.process.pid
    try:
        await handle.write(b'{"type": "no such command"}\n')
        assert b"fault" in await asyncio.wait_for(handle.read(1 << 16), 60.0)
        assert os.getsid(process) == process
        assert os.getpgid(process) == process
        assert os.sched_getaffinity(process) == {min(os.sched_getaffinity(0))}
        assert Path(f"/proc/{process}/cwd").resolve() == tmp_path.resolve()
        limits = Path(f"/proc/{process}/limits").read_text()
        assert "Max open files            99 " in limits
        variables = Path(f"/proc/{process}/environ").read_bytes()
        assert f"HOME={tmp_path}\0".encode() in variables
        assert b"sk-very-secret" not in variables
        assert f"--scratch\0{tmp_path}\0".encode() in Path(f"/proc/{process}/cmdline").read_bytes()
        assert {os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir()} >= {
            "/dev/null"
        }
        os.kill(process, signal.SIGTERM)
        assert await handle.wait() == -signal.SIGTERM
    finally:
        await wall.kill(handle)
    assert not Path(f"/proc/{process}").exists()
