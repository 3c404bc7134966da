"""`eureka prove`: a run's rewards trained by another library, through the real command line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from faulty_environments import TASK, write_lift

from eureka_agent.errors import SettingsError
from eureka_agent.export import proof
from eureka_agent.invocation import install_extra

pytestmark = pytest.mark.slow

SHORT = (
    'fitness_doc="height of the lift"',
    'fitness_doc="height of the lift", fitness_unit="m", fitness_reduction="last",'
    " training=TrainingBudget(env_steps=4096, num_envs=16)",
)
UP = "def compute_reward(height):\n    return height, {'height': height}\n"
DOWN = "def compute_reward(height):\n    return -height, {'down': -height}\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, dict[str, Any]]:
    """A run on the reward of a person, which leads up, beside a human one that leads down."""
    place = tmp_path_factory.mktemp("proof")
    lift = write_lift(place / "lift", rewards={"human": DOWN, "sparse": UP})
    task = TASK.replace("import Task", "import Task, TrainingBudget").replace(*SHORT)
    (lift / "tasks" / "up.py").write_text(task)
    (place / "mine.py").write_text(UP)
    eureka = CommandLine(place)
    flags = ("--final-seeds", "2", "--baseline-seeds", "2", "--sandbox", "process")
    run = eureka.json("train", str(place / "mine.py"), "--env", str(lift), *flags)
    return eureka, run


def test_rewards_lead_where_they_led_here(trained: tuple[CommandLine, dict[str, Any]]) -> None:
    eureka, run = trained
    proved = eureka.json("prove", run["folder"], "--seeds", "1")
    scores = {score["name"]: score for score in proved["scores"]}
    winner = proved["winner"]
    assert set(scores) == {winner, "human", "sparse"}
    # it begins between -1 and 1 m, and cannot be above 5 m
    assert 1.0 < scores[winner]["mean"] <= 5.2
    assert 1.0 < scores["sparse"]["mean"] <= 5.2
    assert scores["human"]["mean"] < -1.0
    assert proved["version"].startswith("stable-baselines3 ")
    folder = Path(eureka.folder / run["folder"]) / "proof"
    assert "def compute_reward(height)" in (folder / f"{winner}.py").read_text()
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
