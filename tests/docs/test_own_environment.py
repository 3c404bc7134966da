"""The page on one's own environment, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "your-own-environment.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each block of code in the file that its first line names."""
    folder = tmp_path_factory.mktemp("page")
    blocks = re.findall(r"```python\n# (boat/\S+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert [name for name, _ in blocks] == [
        "boat/env.py",
        "boat/tasks/cross.py",
        "boat/rewards/human.py",
        "boat/rewards/sparse.py",
    ]
    for name, text in blocks:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def eureka(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs")}
    command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_the_boat_keeps_the_contract(folder: Path) -> None:
    result = eureka(folder, "envs", "--check", "boat")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "boat keeps the contract" in result.stdout


@pytest.mark.slow
def test_the_boat_is_searched_and_its_designer_took_up_the_buoy(folder: Path) -> None:
    flags = [
        "--iterations",
        "1",
        "--samples",
        "4",
        "--finalists",
        "1",
        "--final-seeds",
        "1",
        "--no-baselines",
        "--format",
        "json",
    ]
    result = eureka(folder, "search", "steer the boat to the buoy and stay there", "--env", "boat", *flags)
    assert result.returncode == 0, result.stderr
    best = json.loads(result.stdout)["best"]
    # a boat that stands still where it starts is never within 1 m of a buoy 8 m away: its fitness is 0 s
    assert best["mean"] > 0.5
    reward = next((folder / "runs").glob("*/best/reward.py")).read_text()
    assert "buoy_position" in reward
