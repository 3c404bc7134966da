"""`eureka prove`: a run's rewards trained by another library, through the real command line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from eureka_agent.errors import SettingsError
from eureka_agent.export import proof
from eureka_agent.invocation import install_extra

pytestmark = pytest.mark.slow

BOX = '''"""A point in a box."""
import torch
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task, TrainingBudget, Variable


class Box(VecTask):
    """A point that is pushed along a line."""

    num_observations = 1
    num_actions = 1
    max_episode_length = 10
    control_dt = 0.1
    variables = (Variable("place", (), "m", "world", "place of the point"),)

    def __init__(self, num_envs, device="cpu", seed=0):
        super().__init__(num_envs, device, seed)
        self.place = torch.zeros(num_envs)

    def pre_physics_step(self, actions):
        self.place = self.place + 0.1 * actions[:, 0]

    def compute_observations(self):
        self.obs_buf[:, 0] = self.place

    def compute_variables(self):
        return {"place": self.place}

    def reset_idx(self, env_ids):
        self.place[env_ids] = 0.0
'''
TASK = """from eureka_agent.task import Task, TrainingBudget


def fitness(place):
    return place


task = Task(
    sentence="go right",
    fitness=fitness,
    fitness_doc="place at the end",
    fitness_unit="m",
    fitness_reduction="last",
    training=TrainingBudget(env_steps=4096, num_envs=16),
)
"""
RIGHT = "def compute_reward(place):\n    return place, {'place': place}\n"
LEFT = "def compute_reward(place):\n    return -place, {'left': -place}\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, dict[str, Any]]:
    """A run on the reward of a person, which leads right, beside a human one that leads left."""
    place = tmp_path_factory.mktemp("proof")
    files = {
        "env.py": BOX,
        "tasks/go.py": TASK,
        "rewards/human.py": LEFT,
        "rewards/sparse.py": RIGHT,
    }
    for name, text in files.items():
        (place / "box" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "box" / name).write_text(text)
    (place / "mine.py").write_text(RIGHT)
    eureka = CommandLine(place)
    flags = ("--final-seeds", "2", "--baseline-seeds", "2", "--sandbox", "process")
    run = eureka.json("train", str(place / "mine.py"), "--env", str(place / "box"), *flags)
    return eureka, run


def test_rewards_lead_where_they_led_here(trained: tuple[CommandLine, dict[str, Any]]) -> None:
    eureka, run = trained
    proved = eureka.json("prove", run["folder"], "--seeds", "1")
    scores = {score["name"]: score for score in proved["scores"]}
    winner = proved["winner"]
    assert set(scores) == {winner, "human", "sparse"}
    # ten steps of at most 0.1 m
    assert 0.2 < scores[winner]["mean"] <= 1.0 + 1e-5
    assert 0.2 < scores["sparse"]["mean"] <= 1.0 + 1e-5
    assert -1.0 - 1e-5 <= scores["human"]["mean"] < -0.2
    assert proved["version"].startswith("stable-baselines3 ")
    folder = Path(eureka.folder / run["folder"]) / "proof"
    assert "def compute_reward(place)" in (folder / f"{winner}.py").read_text()
    assert len([*(folder / "sb3").glob("*.safetensors")]) == 3

    # what is stored is not trained again, and one more seed is
    before = {path: path.stat().st_mtime_ns for path in (folder / "sb3").iterdir()}
    again = eureka.json("prove", run["folder"], "--seeds", "2")
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert len([*(folder / "sb3").glob("*.safetensors")]) == 6
    for score in again["scores"]:
        assert score["fitness_per_seed"] != scores[score["name"]]["fitness_per_seed"]
        assert set(scores[score["name"]]["fitness_per_seed"]) < set(score["fitness_per_seed"])

    text = eureka("prove", run["folder"], "--seeds", "2")
    assert "by this trainer" in text
    assert "4,096 env steps a training" in text
    assert "has no attempt '9-99'" in eureka("prove", run["folder"], "9-99", status=2)


def test_a_library_that_is_missing_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="needs stable-baselines3") as caught:
        proof._check_installed("sb3")
    assert caught.value.hint == f"install it: {install_extra('prove')}"
