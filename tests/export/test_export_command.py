"""`eureka export` on runs of real searches, and the examples that it writes, run as a person runs
them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

pytestmark = pytest.mark.slow
SMALL = (
    *("--iterations", "1", "--samples", "2", "--confirm", "0", "--finalists", "1"),
    *("--final-seeds", "1", "--no-baselines", "--env-steps", "2048"),
)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    eureka = CommandLine(tmp_path_factory.mktemp("pendulum"))
    eureka("search", "swing the pendulum up", "--env", "gymnasium:Pendulum-v1", *SMALL)
    return eureka


@pytest.fixture(scope="module")
def exported(pendulum: CommandLine) -> Any:
    """The report of `eureka export latest` on what it wrote."""
    return pendulum.json("export", "latest")


def run_example(folder: Path, *arguments: str) -> str:
    """Output of the example, run where this package cannot be imported."""
    script = (
        "import runpy, sys; sys.modules['eureka_agent'] = None; runpy.run_path('example.py',"
        " run_name='__main__')"
    )
    command = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None,
    reason="stable-baselines3 is not installed",
)
def test_the_example_trains_on_the_wrapped_environment(
    pendulum: CommandLine, exported: Any
) -> None:
    folder = pendulum.folder / exported["folder"]
    assert len((folder / "example.py").read_text().splitlines()) < 40
    printed = run_example(folder, "300")
    assert re.search(r"total_timesteps +\| 300 ", printed)
    # a pendulum that hangs earns about -π² a step for 200 steps; none can earn more than 0
    value = float(printed.splitlines()[-1].removeprefix("return of Pendulum-v1 over 5 episodes: "))
    assert -2000.0 < value < 0.0


def test_the_command_lists_what_it_wrote(pendulum: CommandLine, exported: Any) -> None:
    assert exported["missing"] == {}
    assert exported["run"].endswith("Pendulum-v1_native")
    assert all(Path(path).stat().st_size > 0 for path in exported["files"])
    printed = pendulum("export", "latest", exported["attempt"])
    for name in ("reward.py", "policy.onnx", "policy.pt", "vec_task.py", "gymnasium_wrapper.py"):
        assert f"export/{exported['attempt']}/{name}" in printed


def test_a_wrong_attempt_ends_with_one_error(pendulum: CommandLine) -> None:
    errors = pendulum("export", "latest", "9-99", status=2)
    assert "has no attempt '9-99'" in errors
    assert " hint: expected one of: 1-01" in errors


def test_the_policy_is_worth_what_the_run_says(pendulum: CommandLine, exported: Any) -> None:
    """Acting in Gymnasium through the exported files alone."""
    scored = pendulum.json("evaluate", "latest", "--episodes", "32")
    script = """
import gymnasium, onnxruntime
from gymnasium_wrapper import RewardWrapper, environment_action

environment, total = RewardWrapper(gymnasium.make("Pendulum-v1")), 0.0
policy = onnxruntime.InferenceSession("policy.onnx")
for seed in range(32):
    observation, _ = environment.reset(seed=seed)
    for _ in range(200):
        action = policy.run(None, {"observation": observation[None]})[0][0]
        observation, _, _, _, info = environment.step(environment_action(environment.action_space, action))
        total += info["native_reward"]
print(total / 32)
"""
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=pendulum.folder / exported["folder"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    # both are means of 32 episodes from different starts: five standard errors of their difference
    assert float(result.stdout) == pytest.approx(
        scored["mean"], abs=5.0 * scored["std"] * (2 / 32) ** 0.5
    )
