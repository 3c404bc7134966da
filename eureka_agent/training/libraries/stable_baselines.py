"""Stable-Baselines3's PPO (Raffin et al. 2021), with its own settings and normalised observations
and rewards, as its zoo trains MuJoCo's robots."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor, nn

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.libraries import layers
from eureka_agent.training.libraries.bare_vec_env import BareVecEnv
from eureka_agent.training.libraries.rewarded import RewardedEnvironment

ROLLOUT = 2048
"""Steps between two updates, over all environments: the library's own number."""
_ACTIVATIONS = {"elu": nn.ELU, "tanh": nn.Tanh}


class RewardedVecEnv(BareVecEnv):
    """The environments of a `RewardedEnvironment` on the CPU."""

    def __init__(self, rewarded: RewardedEnvironment) -> None:
        environment = rewarded.environment
        self._rewarded = rewarded
        self._actions = torch.zeros(environment.num_envs, environment.num_actions)
        choices = environment.action_choices
        super().__init__(
            environment.num_envs,
            Box(-np.inf, np.inf, (environment.num_observations,), np.float32),
            MultiDiscrete(list(choices)) if choices else Box(-1.0, 1.0, (environment.num_actions,)),
        )

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
            infos[row] = {
                "TimeLimit.truncated": bool(step.truncated[row]),
                "terminal_observation": step.reached[row].numpy(),
            }
        return step.observations.numpy(), step.reward.numpy(), step.ended.numpy(), infos

    def close(self) -> None:
        self._rewarded.environment.close()


def train(
    rewarded: RewardedEnvironment, settings: TrainingSettings, seed: int
) -> dict[str, Tensor]:
    """The last policy. See `train_with`."""
    environment = VecNormalize(RewardedVecEnv(rewarded), gamma=settings.discount)
    model = made(environment, settings, seed)
    model.learn(settings.env_steps)
    return policy_of(model, environment)


def made(environment: VecNormalize, settings: TrainingSettings, seed: int, **changes: Any) -> PPO:
    """Its learner. `changes`: other arguments of its own."""
    sizes = list(settings.hidden_sizes)
    values = {
        "n_steps": max(1, ROLLOUT // environment.num_envs),
        "gamma": settings.discount,
        "policy_kwargs": {
            "net_arch": {"pi": sizes, "vf": sizes},
            "activation_fn": _ACTIVATIONS[settings.activation],
            "log_std_init": float(np.log(settings.initial_action_std)),
        },
    }
    return PPO("MlpPolicy", environment, seed=seed, device="cpu", **(values | changes))


def policy_of(model: PPO, environment: VecNormalize) -> dict[str, Tensor]:
    """Tensors of its policy in this package's form."""
    statistics = environment.obs_rms
    deviation = np.sqrt(statistics.var + environment.epsilon)
    tensors: dict[str, Tensor] = {
        "observation_mean": torch.from_numpy(statistics.mean).float(),
        "observation_deviation": torch.from_numpy(deviation).float(),
    }
    distribution = distribution_of(environment.venv._rewarded.environment)
    if distribution.parameter:
        tensors[distribution.parameter] = model.policy.log_std.detach()
    linears = [
        each for each in model.policy.mlp_extractor.policy_net if isinstance(each, nn.Linear)
    ]
    return tensors | layers([*linears, model.policy.action_net])
