"""Points on a line, as a VecEnv of rsl_rl, with its PPO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from eureka_adapter import Job, Variable
from eureka_adapter.rsl_rl import RslEnv, main
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

NETWORK = {"class_name": "MLPModel", "hidden_dims": [8], "obs_normalization": True}
NOISE = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "log"}
CONFIGURATION: dict[str, Any] = {
    "num_steps_per_env": 16,
    "save_interval": 10**9,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "actor": {**NETWORK, "distribution_cfg": NOISE},
    "critic": NETWORK,
    "algorithm": {"class_name": "PPO"},
}
VARIABLES = [Variable("position", (), "m", doc="place on the line; the episode ends beyond 2")]


class Points(VecEnv):
    """Points that actions push; a point beyond 2 begins anew."""

    num_actions, max_episode_length = 1, 20

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.device, self.cfg = num_envs, "cpu", {}
        self.position = self.reached = torch.zeros(num_envs)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)

    def reset_all(self, seeds: list[int]) -> None:
        self.position = self.reached = torch.tensor([seed % 1000 / 500 - 1 for seed in seeds])
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self.position[:, None]}, batch_size=[self.num_envs])

    def reward(self) -> Tensor:
        return torch.zeros(self.num_envs)

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Tensor]]:
        self.position = self.reached = self.position + 0.2 * actions[:, 0].clamp(-1, 1)
        self.episode_length_buf = self.episode_length_buf + 1
        out = self.position.abs() > 2
        late = self.episode_length_buf >= self.max_episode_length
        rewards = self.reward()
        self.position = torch.where(out | late, -0.5 * self.position.sign(), self.position)
        self.episode_length_buf = self.episode_length_buf * ~(out | late)
        return self.get_observations(), rewards, out | late, {"time_outs": late & ~out}


def make_env(job: Job) -> RslEnv:
    return RslEnv(
        Points(job.num_envs),
        Points.reset_all,
        values=lambda env: {"position": env.reached},
        start=lambda env: {"position": env.position},
        causes=lambda env: {"left": env.reached < -2, "right": env.reached > 2},
    )


def run(argv: Sequence[str] | None = None, **changes: Any) -> None:
    ends = {"left": "beyond -2", "right": "beyond 2"}
    given = {"control_dt": 0.1, "rewards": 4, "ends": ends, "success_ends": ["right"], **changes}
    main(make_env, VARIABLES, CONFIGURATION, argv=argv, **given)


if __name__ == "__main__":
    run()
