"""The example in the manner of CleanRL: a simulator and a PPO of a user's own."""

from __future__ import annotations

import numpy as np
from job_folders import ROOT, MakeFolder

EXAMPLE = ROOT / "examples" / "commands" / "cleanrl_sled" / "train.py"
FITNESS = "def compute_fitness(position):\n    return (position.abs() < 0.3).float()\n"
REWARD = """
import torch

def compute_reward(position, velocity):
    near, slow = torch.exp(-position.abs()), -0.1 * velocity.abs()
    return near + slow, {"near": near, "slow": slow}
"""


def test_the_example_learns_and_is_evaluated(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.train(12_000, REWARD, num_envs=16, rungs=[1000])
    assert made.run(EXAMPLE).returncode == 0
    (trained,) = made.events("trained")
    entries = [
        {"id": name, "policy": each["policy"], "seed": 3, "episodes": 16, "record": [0]}
        for name, each in zip(("first", "last"), trained["policies"], strict=True)
    ]
    made.job("evaluate", policies=entries)
    assert made.run(EXAMPLE).returncode == 0
    of = {
        name: [each["fitness"] for each in made.events("episode") if each["by"] == name]
        for name in ("first", "last")
    }
    # of 50 steps at most
    assert np.mean(of["last"]) > max(25, np.mean(of["first"]) + 5)
