"""Stable-Baselines3's PPO (Raffin et al. 2021) on our environments, observations normalised."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from _rewarded import RewardedEnvironment
from _vec_env import OneForAll
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

from eureka_agent.settings import TrainingSettings

_ACTIVATIONS = {"elu": nn.ELU, "tanh": nn.Tanh}


class RewardedVecEnv(OneForAll):
    """A `RewardedEnvironment` with what the library's PPO needs, on the CPU."""

    def __init__(self, rewarded: RewardedEnvironment) -> None:
        environment = rewarded.environment
        self._rewarded = rewarded
        self._actions = torch.zeros(environment.num_envs, environment.num_actions)
        choices = environment.action_choices
        observed = Box(-np.inf, np.inf, (environment.num_observations,), np.float32)
        free = Box(-1.0, 1.0, (environment.num_actions,))
        acted = MultiDiscrete(list(choices)) if choices else free
        super().__init__(environment.num_envs, observed, acted)

    def reset(self) -> NDArray[np.float32]:
        self._rewarded.environment.reset()
        return self._rewarded.environment.obs_buf.numpy().copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = torch.from_numpy(np.asarray(actions, dtype=np.float32))

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        step = self._rewarded.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in step.ended.nonzero().flatten().tolist():
            infos[row] = {"TimeLimit.truncated": bool(step.truncated[row])}
            infos[row]["terminal_observation"] = step.reached[row].numpy()
        return step.observations.numpy(), step.reward.numpy(), step.ended.numpy(), infos

    def close(self) -> None:
        self._rewarded.environment.close()


def made(
    rewarded: RewardedEnvironment, settings: TrainingSettings, seed: int, **changes: Any
) -> PPO:
    """Its learner, with our networks, discount and first action noise. `changes`: other arguments
    of its PPO."""
    sizes = list(settings.hidden_sizes)
    policy = {
        "net_arch": {"pi": sizes, "vf": sizes},
        "activation_fn": _ACTIVATIONS[settings.activation],
        "log_std_init": float(np.log(settings.initial_action_std)),
    }
    environment = VecNormalize(RewardedVecEnv(rewarded), norm_reward=False)
    values = {"gamma": settings.discount, "policy_kwargs": policy, **changes}
    return PPO("MlpPolicy", environment, seed=seed, device="cpu", **values)
