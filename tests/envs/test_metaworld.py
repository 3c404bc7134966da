"""MetaWorld's ten tasks against episodes of MetaWorld itself, played with MuJoCo 3.3.0
(`benchmarks/_metaworld_recordings.py`), and against its numbers."""

from __future__ import annotations

import inspect
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import compute_reward
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.loading import load_environment

RECORDINGS = Path(__file__).parent / "data" / "metaworld.npz"
TASKS = sorted(load_environment("metaworld").tasks)


def recorded(task: str) -> dict[str, np.ndarray]:
    with np.load(RECORDINGS) as file:
        prefix = f"{task.replace('_', '-')}/"
        return {
            name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)
        }


def at_recorded_starts(task: str, episodes: dict[str, np.ndarray]) -> Any:
    """An environment with a row for each recorded episode, at its start."""
    loaded = load_environment("metaworld")
    environment: Any = loaded.make(loaded.task(task)[1], len(episodes["start"]))
    places = torch.from_numpy(episodes["place"])
    environment._draw_places = lambda env_ids: places[env_ids]
    environment.reset()
    return environment


def played(task: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What our environment and reward make of the recorded actions, and the recordings. Shapes:
    (episodes, steps, …)."""
    episodes = recorded(task)
    environment = at_recorded_starts(task, episodes)
    reward = compute_reward("metaworld", task)
    arguments = inspect.signature(reward).parameters
    found: dict[str, list[Tensor]] = {name: [] for name in ("hand", "joint", "reward", "success")}
    for step in range(episodes["actions"].shape[1]):
        variables = environment.advance(torch.from_numpy(episodes["actions"][:, step])).variables
        found["hand"].append(variables["hand_position_w"].clone())
        found["joint"].append(environment.joint_positions[:, 9:12].clone())
        found["success"].append(variables["success"].clone())
        found["reward"].append(reward(**{name: variables[name] for name in arguments})[0].clone())
    ours = {name: torch.stack(values, dim=1).numpy() for name, values in found.items()}
    return ours, {**episodes, "joint": episodes["qpos"][..., 9:12]}


@pytest.mark.parametrize("task", TASKS)
def test_moves_scores_and_succeeds_as_metaworld_does(task: str) -> None:
    ours, theirs = played(task)
    hand = np.abs(ours["hand"] - theirs["hand"]).max(axis=-1)
    joint = np.abs(ours["joint"] - theirs["joint"]).max(axis=-1)
    reward = np.abs(ours["reward"] - theirs["reward"])
    success = ours["success"] != theirs["success"]
    # MuJoCo 4 finds other contacts between meshes than 3.3: after a contact movements differ
    assert np.median(hand) < 1.2e-3
    assert np.median(joint) < 0.03  # rad for the door and the lock, else m
    assert ours["success"].max(axis=1).tolist() == theirs["success"].max(axis=1).tolist()
    assert success.mean() < 0.05  # some steps earlier or later
    near = (hand < 1e-3) & (joint < 2e-3)
    assert near.sum() > 20
    assert np.median(reward[near]) < 5e-3  # of 10 at most


@pytest.mark.parametrize("task", TASKS)
def test_objects_and_goals_stand_where_metaworld_draws_them(task: str) -> None:
    """Within the boxes of its recorded places' scenes, at another place in each row, and the goal
    with them."""
    loaded = load_environment("metaworld")
    environment: Any = loaded.make(loaded.task(task)[1], 64, seed=1)
    scene = environment.scene
    places = environment._draw_places(torch.arange(64))
    low, high = torch.tensor(scene.start_low), torch.tensor(scene.start_high)
    assert bool(((places >= low) & (places <= high)).all())
    recorded_places = torch.from_numpy(recorded(task)["place"])
    assert bool(((recorded_places >= low - 1e-6) & (recorded_places <= high + 1e-6)).all())
    varied = high - low > 0.01
    assert bool((places.std(dim=0)[varied] > 0.2 * (high - low)[varied]).all())
    variables = environment.read_variables()
    assert bool((variables["success"] == 0.0).all())
    assert bool((variables["goal_distance"] == variables["start_goal_distance"]).all())


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_environment("metaworld")
    assets = inspect.getmodule(loaded.environment_class).scene_file.__globals__  # type: ignore[union-attr]

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setitem(assets, "distribution", missing)
    with pytest.raises(EnvironmentLoadError, match="metaworld, which is not installed") as error:
        loaded.make(loaded.task(None)[1], 1)
    assert "pip install --no-deps metaworld==3.1.1" in error.value.hint

    class Older:
        version = "3.0.0"

    monkeypatch.setitem(assets, "distribution", lambda name: Older())
    with pytest.raises(EnvironmentLoadError, match=r"metaworld 3.0.0 is installed, expected 3.1.1"):
        loaded.make(loaded.task(None)[1], 1)
