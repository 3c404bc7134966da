"""`eureka envs` on folders whose code prints, starts threads, does not end or is at fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_folders import write_point
from faulty_environments import RESET, REWARD, TASK, line_of, write_lift

from eureka_agent.cli.envs import envs
from eureka_agent.resources import resource_folder

PRINTS = """
import ctypes, os, sys
print("hello from env.py")
os.write(1, b"hello from os.write\\n")
sys.__stdout__.write("hello from sys\\n")
ctypes.CDLL(None).printf(b"hello from C\\n")
"""
"""By all the ways to standard output; C keeps it back while that is no terminal."""
THREAD = """import threading
threading.Thread(target=threading.Event().wait).start()

import torch
"""


@pytest.fixture
def chatty(tmp_path: Path) -> Path:
    """The built-in cart-pole, with a line that prints when it is imported."""
    import shutil

    folder = tmp_path / "chatty"
    shutil.copytree(
        resource_folder("envs") / "cartpole", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    with (folder / "env.py").open("a", encoding="utf-8") as file:
        file.write(PRINTS)
    return folder


@pytest.mark.parametrize("arguments", [("{}",), ("--check", "{}", "--task", "balance")])
def test_what_an_environment_prints_does_not_break_the_json(
    chatty: Path, arguments: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "eureka_agent.cli.main", "envs", "--format", "json"]
    command += [argument.format(chatty) for argument in arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=chatty.parent)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)
    for way in ("env.py", "os.write", "sys", "C"):
        assert result.stderr.count(f"hello from {way}\n") == 1


@pytest.mark.parametrize(
    ("change", "arguments", "status", "said"),
    [
        (("hit_the_roof", "flew_away"), ("{}",), 0, "flew_away"),
        (('"height": self.height', '"height": 1'), ("--check", "{}"), 1, "variables after a reset"),
    ],
)
def test_a_thread_of_an_environment_does_not_keep_the_command(
    tmp_path: Path, change: tuple[str, str], arguments: tuple[str, ...], status: int, said: str
) -> None:
    folder = write_lift(tmp_path / "lift", change, ("import torch\n\n", f"{THREAD}\n"))
    command = [sys.executable, "-m", "eureka_agent.cli.main", "envs"]
    command += [argument.format(folder) for argument in arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert result.returncode == status, result.stderr
    assert said in result.stdout


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "eureka_agent.cli.main",
        "envs",
        "--check",
        str(folder),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder.parent)


def test_the_check_reads_like_a_linter_and_fails_on_errors(tmp_path: Path) -> None:
    """Both of two tasks are checked. A failure is told with file and line."""
    folder = write_lift(tmp_path / "lift", rewards={"human": REWARD})
    (folder / "tasks" / "down.py").write_text(TASK.replace("return height", "return -hieght"))
    result = check(folder)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("task ")] == ["task down", "task up"]
    found = [line for line in lines if line.startswith(("warning", "error"))]
    assert found[0].startswith(
        f"error   fitness: {folder / 'tasks' / 'down.py'}, line 5: NameError: name 'hieght'"
    )
    assert len(found) == 1
    assert "        hint:     correct this line" in lines
    assert result.stderr.startswith("error: 1 error in ")
    assert "Traceback" not in result.stderr


def test_the_check_ends_where_the_environment_does_not(tmp_path: Path) -> None:
    folder = write_lift(tmp_path / "lift", (RESET, f"{RESET}        while True: pass\n"))
    result = check(folder, "--time-limit", "3", "--format", "json")
    assert result.returncode == 1
    results = json.loads(result.stdout)["checks"]
    assert [(each["name"], each["severity"], each["passed"]) for each in results[:2]] == [
        ("loads", "ok", True),
        ("can be made", "error", False),
    ]
    line = line_of((folder / "env.py").read_text(), "while True")
    assert results[1]["actual"] == f"{folder / 'env.py'}, line {line}: it did not end within 3 s"


def test_the_check_ends_where_a_library_does_not(tmp_path: Path) -> None:
    """No signal interrupts this call: the process says where it stands and ends."""
    folder = write_lift(tmp_path / "lift", (RESET, f"{RESET}        sum(range(10**13))\n"))
    result = check(folder, "--time-limit", "1")
    assert result.returncode == 1
    assert "ok      loads" in result.stdout
    line = line_of((folder / "env.py").read_text(), "sum(range")
    assert f'File "{folder / "env.py"}", line {line} in reset_idx' in result.stderr


def test_a_command_has_time_to_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mjlab's first start took more than the 60 s of other environments, on two busy cores."""
    limits = []

    def checked(reference: str, task: str | None, *, limit_s: float, **_: Any) -> list[Any]:
        limits.append(limit_s)
        return []

    monkeypatch.setattr("eureka_agent.training.conformance.check_environment", checked)
    folders = [write_point(tmp_path / "point"), write_lift(tmp_path / "lift")]
    for folder in folders:
        assert CliRunner().invoke(envs, ["--check", str(folder)]).exit_code == 0
    CliRunner().invoke(envs, ["--check", str(folders[0]), "--time-limit", "7"])
    assert limits == [1200.0, 60.0, 7.0]


def shown(reference: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "eureka_agent.cli.main", "envs", reference, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


def test_an_environment_is_shown_with_its_endings_masses_and_start_states() -> None:
    text = shown("cartpole", "--task", "swingup")
    assert (
        "ends early by: pole_fell (never in this task), left_the_track (cart_position beyond ±3 m)"
        in text
    )
    assert "sizes cart 1 kg; pole 0.1 kg, 1 m long; track 6 m long" in text
    assert "cart_position (batch,) m world -3 … 3 start -0.2 to 0.2" in text


def test_one_that_cannot_be_reset_is_shown_all_the_same(chatty: Path) -> None:
    with (chatty / "env.py").open("a", encoding="utf-8") as file:
        file.write(
            '\ndef fail(*arguments):\n    raise ValueError("stuck")\n\n\nCartpole.reset_idx ='
            " fail\n"
        )
    text = shown(str(chatty))
    assert "cart_position (batch,) m world -3 … 3 position of the cart" in text
    assert json.loads(shown(str(chatty), "--format", "json"))["measured"] is None
