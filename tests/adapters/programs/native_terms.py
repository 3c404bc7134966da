"""Plays an example's environment with actions that fulfil its task, and prints what it tells of each
step. Runs in the simulator's Python: native_terms.py TRAIN_PY TASK"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from eureka_adapter import gymnasium_sb3
from eureka_adapter.gymnasium_envs import Watched


def lift(step: int, told: Any) -> np.ndarray:
    """Go to the cube with open fingers, close them, go up."""
    action = np.zeros(7)
    action[6] = -1.0 if step < 50 else 1.0
    action[:3] = 10 * told["gripper_to_cube"] if step < 70 else (0.0, 0.0, 0.5 * (step >= 70))
    return action


def push_cube(step: int, told: Any) -> np.ndarray:
    """Go behind the cube, down, and forward."""
    cube, hand = told["cube_position"], told["hand_position"]
    behind = cube - hand + (-0.08, 0.0, 0.12 if step < 12 else 0.0)
    forward = np.array([1.0, 0.0, 0.0]) if step >= 25 else 10 * behind
    return np.array([*forward, -1.0])


SCRIPTED: dict[str, Callable[[int, Any], np.ndarray]] = {"lift": lift, "push_cube": push_cube}


def measure(make_env: Any, variables: Any, values: Any, **given: Any) -> None:
    """Take the place of `main`."""
    job = SimpleNamespace(task=sys.argv[2], mode="train", render_mode=None, options={})
    env = Watched(make_env(job), values, max_episode_length=given["max_episode_length"])
    weights = {each["name"]: each["weight"] for each in given["native_terms"]}
    env.action_space.seed(0)
    for name, steps in (("random", 60), ("scripted", 120)):
        env.reset(seed=1)
        told = env.start
        for step in range(min(steps, env.max_episode_length)):
            action = env.action_space.sample()
            if name == "scripted" and job.task in SCRIPTED:
                action = np.clip(SCRIPTED[job.task](step, told), -1, 1).astype(np.float32)
            _, reward, *_ = env.step(action)
            told = env.reached
            total = sum(weight * float(told[term]) for term, weight in weights.items())
            line = {"by": name, "reward": float(reward), "sum": total}
            print("told", json.dumps({**line, **{key: told[key].tolist() for key in told}}))


gymnasium_sb3.main = measure
runpy.run_path(sys.argv[1], run_name="__main__")
