"""`eureka export` on runs of real searches, and the examples that it writes, run as a person runs
them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
SMALL = (
    "--iterations",
    "1",
    "--samples",
    "2",
    "--confirm",
    "0",
    "--finalists",
    "1",
    "--final-seeds",
    "1",
    "--no-baselines",
)


class Eureka:
    """The command with a folder of runs of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, status: int = 0) -> str:
        command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
        environment = {**os.environ, "EUREKA_RUNS": str(self.folder / "runs")}
        result = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert result.returncode == status, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result.stdout if status == 0 else result.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--format", "json"))


def search(folder: Path, sentence: str, environment: str) -> Eureka:
    eureka = Eureka(folder)
    eureka("search", sentence, "--env", environment, "--env-steps", "2048", *SMALL)
    return eureka


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Eureka:
    return search(
        tmp_path_factory.mktemp("pendulum"), "swing the pendulum up", "gymnasium:Pendulum-v1"
    )


@pytest.fixture(scope="module")
def exported(pendulum: Eureka) -> Any:
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
def test_the_example_trains_on_the_wrapped_environment(pendulum: Eureka, exported: Any) -> None:
    folder = pendulum.folder / exported["folder"]
    assert len((folder / "example.py").read_text().splitlines()) < 40
    printed = run_example(folder, "300")
    assert re.search(r"total_timesteps +\| 300 ", printed)
    # a pendulum that hangs earns about -π² a step for 200 steps; none can earn more than 0
    value = float(printed.splitlines()[-1].removeprefix("return of Pendulum-v1 over 5 episodes: "))
    assert -2000.0 < value < 0.0


def test_the_command_lists_what_it_wrote(pendulum: Eureka, exported: Any) -> None:
    assert exported["missing"] == {}
    assert exported["run"].endswith("Pendulum-v1_native")
    assert all(Path(path).stat().st_size > 0 for path in exported["files"])
    printed = pendulum("export", "latest", exported["attempt"])
    for name in ("reward.py", "policy.onnx", "policy.pt", "vec_task.py", "gymnasium_wrapper.py"):
        assert f"export/{exported['attempt']}/{name}" in printed


def test_a_wrong_attempt_ends_with_one_error(pendulum: Eureka) -> None:
    errors = pendulum("export", "latest", "9-99", status=2)
    assert "has no attempt '9-99'" in errors
    assert " hint: expected one of: 1-01" in errors


@pytest.mark.in_turns(2)
def test_a_policy_of_choices_is_worth_what_the_run_says(tmp_path: Path) -> None:
    """From the search to the exported files alone, in Gymnasium."""
    eureka = search(tmp_path, "keep the pole up", "gymnasium:CartPole-v1")
    eureka("export", "latest", "--out", "mine")
    scored = eureka.json("evaluate", "latest", "--episodes", "64")
    script = """
import gymnasium, onnxruntime
from gymnasium_wrapper import RewardWrapper, environment_action

environment, steps = RewardWrapper(gymnasium.make("CartPole-v1")), 0
policy = onnxruntime.InferenceSession("policy.onnx")
for seed in range(64):
    observation, _ = environment.reset(seed=seed)
    ended = False
    while not ended:
        (action,) = policy.run(["action"], {"observation": observation[None]})
        action = environment_action(environment.action_space, action[0])
        observation, _, terminated, truncated, info = environment.step(action)
        assert info["native_reward"] == 1.0
        ended, steps = terminated or truncated, steps + 1
print(steps / 64)
"""
    command = [sys.executable, "-c", script]
    result = subprocess.run(
        command, cwd=tmp_path / "mine", capture_output=True, text=True, check=True, timeout=300
    )
    # both are means of 64 episodes from different starts: five standard errors of their difference
    assert float(result.stdout) == pytest.approx(
        scored["mean"], abs=5.0 * scored["std"] * (2 / 64) ** 0.5
    )
    described = json.loads((tmp_path / "mine" / "policy.json").read_text())
    assert described["action"]["columns"][0]["choices"] == 2


def test_the_policy_is_worth_what_the_run_says(pendulum: Eureka, exported: Any) -> None:
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
