"""rsl-rl's PPO (Schwarke et al. 2025) on our environments, with normalised observations."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import torch
from _rewarded import RewardedEnvironment
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict
from torch import Tensor, nn

from eureka_agent.settings import TrainingSettings


class RewardedRslEnv(VecEnv):
    """The environments of a `RewardedEnvironment` on the CPU."""

    def __init__(self, rewarded: RewardedEnvironment) -> None:
        self._rewarded = rewarded
        environment = rewarded.environment
        self.num_envs, self.num_actions = environment.num_envs, environment.num_actions
        self.max_episode_length, self.device = environment.max_episode_length, "cpu"
        self.cfg: dict[str, Any] = {}

    @property
    def episode_length_buf(self) -> Tensor:
        return self._rewarded.environment.progress_buf

    @episode_length_buf.setter
    def episode_length_buf(self, value: Tensor) -> None:
        self._rewarded.environment.progress_buf.copy_(value)

    def get_observations(self) -> TensorDict:
        return self._observations(self._rewarded.environment.obs_buf.clone())

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        step = self._rewarded.step(actions)
        observations = self._observations(step.observations)
        return observations, step.reward, step.ended.long(), {"time_outs": step.truncated}

    def _observations(self, values: Tensor) -> TensorDict:
        return TensorDict({"policy": values}, batch_size=[self.num_envs])


def made(
    rewarded: RewardedEnvironment, settings: TrainingSettings, seed: int, **changes: Any
) -> OnPolicyRunner:
    """Its learner. `changes`: other arguments of its own PPO."""
    torch.manual_seed(seed)
    chosen = configuration(settings)
    chosen["algorithm"] |= changes
    with contextlib.redirect_stdout(io.StringIO()):
        return OnPolicyRunner(RewardedRslEnv(rewarded), chosen, log_dir=None, device="cpu")


def learn(runner: OnPolicyRunner, iterations: int) -> None:
    """Train, without the page that it prints an iteration."""
    with contextlib.redirect_stdout(io.StringIO()):
        runner.learn(iterations, init_at_random_ep_len=True)


def configuration(settings: TrainingSettings) -> dict[str, Any]:
    """Its form of the networks, the discount, the first action noise and the horizon."""
    network = {
        "class_name": "MLPModel",
        "hidden_dims": list(settings.hidden_sizes),
        "activation": settings.activation,
        "obs_normalization": True,
    }
    noise = {
        "class_name": "GaussianDistribution",
        "init_std": settings.initial_action_std,
        "std_type": "log",
    }
    return {
        "num_steps_per_env": settings.horizon,
        "save_interval": 10**9,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": noise},
        "critic": dict(network),
        "algorithm": {"class_name": "PPO", "gamma": settings.discount},
    }


def policy_of(runner: OnPolicyRunner) -> dict[str, Tensor]:
    """Tensors of its policy in this package's form."""
    actor = runner.alg.get_policy()
    linears = [module for module in actor.mlp.modules() if isinstance(module, nn.Linear)]
    layers = {}
    for index, linear in enumerate(linears):
        layers[f"policy.{index}.weight"] = linear.weight.detach().T.contiguous()
        layers[f"policy.{index}.bias"] = linear.bias.detach().unsqueeze(0)
    return {
        "observation_mean": actor.obs_normalizer._mean[0],
        "observation_deviation": actor.obs_normalizer._std[0] + actor.obs_normalizer.eps,
        "log_std": actor.distribution.log_std_param.detach(),
        **layers,
    }
