"""`eureka envs --new`: templates that keep the contract and train as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eureka_agent.cli.own_environment import KINDS
from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.catalogue import write_new_environment
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.training.conformance import check_environment


def eureka(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs")}
    command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"command"}))  # its own test has its simulator
def test_a_template_keeps_the_contract_and_names_all_that_it_says(
    tmp_path: Path, kind: str
) -> None:
    files = write_new_environment(tmp_path / "mine", kind)
    assert {path.relative_to(tmp_path / "mine").parts[0] for path in files} >= {
        "env.py",
        "tasks",
        "rewards",
    }
    assert any("CHANGE" in path.read_text() for path in files)
    assert [
        result for result in check_environment(str(tmp_path / "mine")) if not result.passed
    ] == []
    description = describe(load_environment(str(tmp_path / "mine")))
    assert description.human_reward is not None
    assert (
        sum(len(each.entries) or 1 for each in description.observation_channels)
        == description.num_observations
    )
    assert all(variable.unit != "?" for variable in description.public_variables())


@pytest.mark.slow
def test_a_template_is_trained_as_it_is(tmp_path: Path) -> None:
    """MuJoCo's: other tests search with that of torch."""
    written = eureka(tmp_path, "envs", "--new", "mine", "--kind", "mujoco")
    assert written.returncode == 0, written.stderr
    assert "search --env ./mine" in written.stdout
    flags = "--iterations 1 --samples 1 --finalists 1 --final-seeds 1 --no-baselines"
    flags += " --env-steps 2048 --sandbox process --format json"
    result = eureka(tmp_path, "search", "--env", "./mine", *flags.split())
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["best"] is not None


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(EnvironmentLoadError, match="is not empty"):
        write_new_environment(tmp_path / "mine", "torch")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]
    with pytest.raises(EnvironmentLoadError, match="cannot write the environment to"):
        write_new_environment(tmp_path / "mine" / "notes", "torch")
    result = eureka(tmp_path, "envs", "--new", "other")
    assert result.returncode == 2
    assert "--kind" in result.stderr
    assert not (tmp_path / "other").exists()
