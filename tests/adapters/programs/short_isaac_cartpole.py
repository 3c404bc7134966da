"""Isaac Lab's cartpoles, direct and managed, with short episodes and a model from a file, since its
own is on a server. They also write the rewards that Isaac Lab gives and the states that it resets,
as it has them, into steps.jsonl."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import torch
from eureka_adapter import Variable
from eureka_adapter.isaac_lab import main
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.utils.parse_cfg import load_cfg_from_registry
from torch import Tensor

FOLDER = Path(sys.argv[-1])


class Written(gymnasium.Env):
    """Writes the rewards of its steps and the states before its resets."""

    def step(self, action: Tensor) -> Any:
        self.ended: dict[int, list[float]] = {}
        result = super().step(action)
        with (FOLDER / "steps.jsonl").open("a") as file:
            file.write(json.dumps({"reward": result[1].tolist(), "ended": self.ended}) + "\n")
        return result

    def _reset_idx(self, env_ids: Any = None) -> None:
        if hasattr(self, "ended"):
            (robot,) = self.scene.articulations.values()
            positions = robot.data.joint_pos.torch
            rows = torch.arange(self.num_envs)[env_ids].tolist()
            self.ended = {row: positions[row].tolist() for row in rows}
        super()._reset_idx(env_ids)


class Direct(Written, CartpoleEnv):
    """Moves its goal while it computes the reward, as the hands of Isaac Lab do."""

    goal = 0.0

    def _get_rewards(self) -> Tensor:
        self.goal += 1.0
        return super()._get_rewards()


class Managed(Written, ManagerBasedRLEnv):
    pass


def configuration(task: str, robot: str) -> Any:
    cfg = load_cfg_from_registry(task, "env_cfg_entry_point")
    cfg.scene.ground = None
    getattr(cfg.scene, robot).spawn.usd_path = str(Path(__file__).with_name("cartpole.usda"))
    cfg.episode_length_s = 0.5
    if robot == "robot":
        cfg.terminations.far = cfg.terminations.cart_out_of_bounds
        cfg.terminations.far.params["bounds"] = (-0.9, 0.9)
        cfg.terminations.cart_out_of_bounds = None
    else:
        cfg.max_cart_pos = 0.9
    return cfg


for name, task, kind, robot in (
    ("Short-Direct", "Isaac-Cartpole-Direct", Direct, "cartpole"),
    ("Short", "Isaac-Cartpole", Managed, "robot"),
):
    given = dict(gymnasium.spec(task).kwargs)
    given["env_cfg_entry_point"] = lambda task=task, robot=robot: configuration(task, robot)
    gymnasium.register(name, kind, disable_env_checker=True, kwargs=given)

torch.set_num_threads(1)
main(
    [Variable("goal", doc="number of steps before this one")],
    lambda env: {"goal": torch.full((env.num_envs,), getattr(env, "goal", 0.0))},
)
