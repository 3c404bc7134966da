"""`eureka envs` on a folder whose code prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eureka_agent.resources import resource_folder


@pytest.fixture
def chatty(tmp_path: Path) -> Path:
    """The built-in cart-pole, with a line that prints when it is imported."""
    import shutil

    folder = tmp_path / "chatty"
    shutil.copytree(resource_folder("envs") / "cartpole", folder, ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "env.py").open("a", encoding="utf-8") as file:
        file.write('\nprint("hello from env.py")\n')
    return folder


@pytest.mark.parametrize("arguments", [("{}",), ("--check", "{}", "--task", "balance")])
def test_what_an_environment_prints_does_not_break_the_json(chatty: Path, arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "eureka_agent.cli.main", "envs", "--format", "json"]
    command += [argument.format(chatty) for argument in arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=chatty.parent)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)
    assert "hello from env.py" in result.stderr


def shown(reference: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "eureka_agent.cli.main", "envs", reference, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


def test_an_environment_is_shown_with_its_endings_masses_and_start_states() -> None:
    text = shown("cartpole", "--task", "swingup")
    assert "ends early by: pole_fell (never in this task), left_the_track (cart_position beyond ±3 m)" in text
    assert "sizes cart 1 kg; pole 0.1 kg, 1 m long; track 6 m long" in text
    assert "cart_position (batch,) m world -3 … 3 start -0.2 to 0.2" in text


def test_one_that_cannot_be_reset_is_shown_all_the_same(chatty: Path) -> None:
    with (chatty / "env.py").open("a", encoding="utf-8") as file:
        file.write('\ndef fail(*arguments):\n    raise ValueError("stuck")\n\n\nCartpole.reset_idx = fail\n')
    text = shown(str(chatty))
    assert "cart_position (batch,) m world -3 … 3 position of the cart" in text
    assert json.loads(shown(str(chatty), "--format", "json"))["measured"] is None
