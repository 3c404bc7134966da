"""Folders of command environments for tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

SCRIPT = Path(__file__).with_name("command_point.py")
REWARD = """def compute_reward(distance, actions):
    near = -distance
    effort = -0.01 * actions.square().sum(dim=-1)
    return near + effort, {"near": near, "effort": effort}
"""
FITNESS = "def compute_fitness(distance):\n    return -distance\n"
SPARSE = "def compute_reward(distance):\n    return -distance, {'near': -distance}\n"


def write_point(folder: Path, fault: str = "", mode: str = "", **changes: Any) -> Path:
    """The point on a line of `command_point.py`. `fault`: what it does wrong, in one mode or in
    all; `changes`: other entries of `command.yaml`."""
    told = {
        "interpreter": sys.executable,
        "script": "train.py",
        "slots": 2,
        "memory_gib": 2,
        "variables": {"FAULT": fault, **({"FAULTY_MODE": mode} if mode else {})},
        "tasks": {
            "reach": {
                "sentence": "move the point to the target and stay there",
                "fitness": "fitness.py",
                "fitness_doc": "mean of minus the distance to the target",
                "fitness_unit": "m",
                "fitness_reduction": "mean",
                "env_steps": 2000,
                "num_envs": 4,
            }
        },
        **changes,
    }
    (folder / "rewards").mkdir(parents=True)
    (folder / "command.yaml").write_text(yaml.safe_dump(told))
    (folder / "train.py").write_text(SCRIPT.read_text())
    (folder / "fitness.py").write_text(FITNESS)
    (folder / "rewards" / "human.py").write_text(REWARD)
    (folder / "rewards" / "sparse.py").write_text(SPARSE)
    return folder
