"""mjlab's cartpole with short episodes, an end, and terms of all kinds. It also writes the rewards
that mjlab gives and the states that it resets, as mjlab itself has them, into steps.jsonl."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import eureka_adapter.mjlab as adapter
import torch
from eureka_adapter import Variable
from mjlab.envs import ManagerBasedRlEnv
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, register_mjlab_task
from torch import Tensor


def far(env: ManagerBasedRlEnv, most: float) -> Tensor:
    """End when the cart is far from the middle. The pole does not matter."""
    return env.scene["cartpole"].data.joint_pos[:, 0].abs() > most


def joint_vel(env: ManagerBasedRlEnv) -> Tensor:
    return env.scene["cartpole"].data.joint_vel.square().sum(dim=1)


class Age:
    """Count the steps of the episode. Shape (num_envs,)."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        self.steps = torch.zeros(env.num_envs)

    def reset(self, env_ids: Any) -> None:
        self.steps[env_ids] = 0.0

    def __call__(self, env: ManagerBasedRlEnv) -> Tensor:
        self.steps += 1.0
        return self.steps.clone()


class Written(ManagerBasedRlEnv):
    """Writes the rewards of its steps and the states before its resets."""

    def step(self, action: Tensor) -> Any:
        self.ended: dict[int, list[float]] = {}
        result = super().step(action)
        with (Path(sys.argv[-1]) / "steps.jsonl").open("a") as file:
            file.write(json.dumps({"reward": result[1].tolist(), "ended": self.ended}) + "\n")
        return result

    def _reset_idx(self, env_ids: Any = None) -> None:
        if hasattr(self, "ended"):
            self.ended = {row: self.sim.data.qpos[row].tolist() for row in env_ids.tolist()}
        super()._reset_idx(env_ids)


adapter.ManagerBasedRlEnv = Written
cfg, rl = load_env_cfg("Mjlab-Cartpole-Swingup"), load_rl_cfg("Mjlab-Cartpole-Swingup")
cfg.episode_length_s = 1.0
cfg.terminations["far"] = TerminationTermCfg(func=far, params={"most": 0.15})
cfg.rewards["joint_vel"] = RewardTermCfg(func=joint_vel, weight=-0.5)
cfg.rewards["age"] = RewardTermCfg(func=Age, weight=3.0)
cfg.rewards["unused"] = RewardTermCfg(func=joint_vel, weight=0.0)
rl.num_steps_per_env, rl.algorithm.num_learning_epochs = 16, 2
register_mjlab_task("Short", cfg, cfg, rl)
adapter.main(
    [Variable("cosine", doc="of the pole's angle"), Variable("counter", doc="steps so far")],
    lambda env: {
        "cosine": env.scene["cartpole"].data.joint_pos[:, 1].cos(),
        "counter": torch.full((env.num_envs,), float(env.common_step_counter)),
    },
)
