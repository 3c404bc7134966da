"""A VecEnv of rsl_rl with its PPO: the same training as by OnPolicyRunner, and several at once."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from eureka_adapter import episode_seed
from job_folders import MakeFolder
from rsl_rl.runners import OnPolicyRunner
from torch import Tensor

FITNESS = "def compute_fitness(position):\n    return -position.abs()\n"
REWARD = (
    "def compute_reward(position):\n    near = -position.abs()\n    return near, {'near': near}\n"
)


def entries(*names: str, **changes: Any) -> list[dict[str, Any]]:
    return [
        {"id": name, "reward": f"{name}.py", "seed": 5, "state": None, "rungs": [], **changes}
        for name in names
    ]


def test_one_training_is_that_of_the_librarys_runner(folder: MakeFolder) -> None:
    from programs.point import CONFIGURATION, Points

    made = folder(FITNESS)
    made.train(640, REWARD, seed=5, rungs=[100])
    made.call("point", random_first_lengths=False)
    curves, (trained,) = made.events("curve"), made.events("trained")
    assert trained["env_steps"] == curves[-1]["env_steps"] == 640
    assert {name for each in curves for name in each["ends"]} <= {"left", "right", "time_out"}

    class Rewarded(Points):
        def reward(self) -> Tensor:
            return -self.position.abs()

    torch.manual_seed(episode_seed("algorithm", 5, 0))
    runner = OnPolicyRunner(env := Rewarded(4), copy.deepcopy(CONFIGURATION), None, "cpu")
    env.reset_all([episode_seed("training", 5, 0, row) for row in range(4)])
    runner.learn(10)
    arrays = np.load(made.path / trained["policies"][-1]["policy"], allow_pickle=False)
    expected = runner.alg.get_policy().state_dict()
    assert set(arrays.files) == set(expected)
    for name, tensor in expected.items():
        np.testing.assert_array_equal(arrays[name], tensor.numpy())


def test_several_rewards_share_the_rows_and_one_fault_ends_one(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.write("a.py", REWARD)
    made.write("b.py", REWARD.replace("-position", "position"))
    made.write("c.py", REWARD.replace("near =", "near = 1 / (position.abs() < 1) *"))
    made.job("train", env_steps=1600, save_every_s=600, num_envs=12, trainings=entries(*"abc"))
    made.call("point")
    (fault,) = made.events("fault")
    assert (fault["training"], fault["whose"], fault["line"]) == ("c", "reward", 3)
    assert {each["training"]: each["env_steps"] for each in made.events("trained")} == {
        "a": 1600,
        "b": 1600,
    }
    last = {each["training"]: each["reward"] for each in made.events("curve")}
    assert last["a"] < 0 < last["b"]


def test_a_state_goes_on_and_a_policy_is_evaluated(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.write("a.py", REWARD)
    made.job("train", env_steps=6400, save_every_s=0, num_envs=16, trainings=entries("a"))
    made.call("point")
    assert made.events("saved")[-1]["env_steps"] == 6400
    entry = entries("a", state="state-a-6400.pt")
    made.job("train", env_steps=6500, save_every_s=600, trainings=entry)
    made.call("point")
    (trained,) = made.events("trained")
    assert (made.events("curve")[0]["env_steps"] - 6400, trained["env_steps"]) == (128, 6528)
    made.evaluate(trained["policies"][-1]["policy"], record="extremes", episodes=9)
    made.call("point")
    episodes = made.events("episode")
    # trained to come to 0: most of 20 steps there
    assert all(each["fitness"] > -6 for each in episodes)
    for each in (each for each in episodes if "values" in each):
        positions = [each["start"]["position"], *each["values"]["position"]]
        pushes = np.clip([action for (action,) in each["values"]["actions"]], -1, 1)
        np.testing.assert_allclose(np.diff(positions), 0.2 * pushes, atol=1e-5)
        assert abs(each["fitness"] + np.abs(positions[1:]).sum()) < 1e-4
