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
