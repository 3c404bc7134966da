"""rsl-rl and Stable-Baselines3 on the same simulator and reward, with PPO settings as close as each
allows."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

import numpy as np
import torch
from _common import Subject
from _vector import BareVecEnv
from numpy.typing import NDArray
from torch import Tensor, nn

from eureka_agent.settings import TrainingSettings
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.policy import Policy

try:
    from rsl_rl.env import VecEnv as RslVecEnv
    from rsl_rl.runners import OnPolicyRunner
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize
    from tensordict import TensorDict
except ImportError as error:
    raise SystemExit(
        f"error: {error.name!r}, which this compares with, is not installed; run ./setup.sh bench"
    ) from None


class RewardedEnvironment:
    """A VecTask with its human reward computed at every step, as these libraries want it."""

    def __init__(self, subject: Subject, num_envs: int, seed: int) -> None:
        self.environment = subject.make(num_envs, seed)
        self.reward = subject.reward()
        self.environment.reset()
        self._previous = self._copy(self.environment.read_variables())

    @staticmethod
    def _copy(variables: Any) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in variables.items()}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Observations after resets, rewards, ended, truncated, observations before resets."""
        transition = self.environment.advance(actions)
        values = {
            name: self._previous[name.removeprefix(PREVIOUS_PREFIX)]
            if name.startswith(PREVIOUS_PREFIX)
            else transition.variables[name]
            for name in self.reward.arguments
        }
        total, _ = self.reward(values)
        ended, truncated = self.environment.reset_buf.clone(), transition.truncated.clone()
        reached = transition.observations.clone()
        uses_previous = any(name.startswith(PREVIOUS_PREFIX) for name in self.reward.arguments)
        observations = self.environment.reset_done().clone()
        if uses_previous:
            self._previous = self._copy(self.environment.read_variables())
        return observations, total, ended, truncated, reached


class _RslEnvironment(RslVecEnv):
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
        observations, reward, ended, truncated, _ = self._rewarded.step(actions)
        return self._observations(observations), reward, ended.long(), {"time_outs": truncated}

    def _observations(self, values: Tensor) -> TensorDict:
        return TensorDict({"policy": values}, batch_size=[self.num_envs])


def _rsl_configuration(settings: TrainingSettings) -> dict[str, Any]:
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
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": settings.epochs,
            "num_mini_batches": settings.minibatches,
            "clip_param": settings.clip,
            "gamma": settings.discount,
            "lam": settings.gae_lambda,
            "value_loss_coef": settings.value_coefficient,
            "entropy_coef": settings.entropy_coefficient,
            "learning_rate": settings.learning_rate,
            "max_grad_norm": settings.max_gradient_norm,
            "use_clipped_value_loss": settings.clip_value_loss,
            "schedule": "adaptive" if settings.desired_kl > 0 else "fixed",
            "desired_kl": settings.desired_kl,
        },
    }


def rsl_rl(
    subject: Subject, settings: TrainingSettings, seed: int, iterations: int
) -> tuple[float, Policy]:
    """Processor seconds of one rsl-rl training (without its set-up) and its last policy."""
    torch.manual_seed(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        environment = _RslEnvironment(RewardedEnvironment(subject, settings.num_envs, seed))
        runner = OnPolicyRunner(
            environment, _rsl_configuration(settings), log_dir=None, device="cpu"
        )
        began = time.process_time()
        runner.learn(iterations, init_at_random_ep_len=True)
        seconds = time.process_time() - began
    actor = runner.alg.get_policy()
    tensors = {
        "observation_mean": actor.obs_normalizer._mean[0],
        "observation_deviation": actor.obs_normalizer._std[0] + actor.obs_normalizer.eps,
        "log_std": actor.distribution.log_std_param.detach(),
    }
    linears = [module for module in actor.mlp.modules() if isinstance(module, nn.Linear)]
    for index, linear in enumerate(linears):
        tensors[f"policy.{index}.weight"] = linear.weight.detach().T.contiguous()
        tensors[f"policy.{index}.bias"] = linear.bias.detach().unsqueeze(0)
    return seconds, Policy(tensors, settings.activation, {})


class _SB3Environment(BareVecEnv):
    def __init__(self, rewarded: RewardedEnvironment) -> None:
        from gymnasium.spaces import Box

        environment = rewarded.environment
        self._rewarded = rewarded
        self._actions = torch.zeros(environment.num_envs, environment.num_actions)
        super().__init__(
            environment.num_envs,
            Box(-np.inf, np.inf, (environment.num_observations,), np.float32),
            Box(-1.0, 1.0, (environment.num_actions,), np.float32),
        )

    def reset(self) -> NDArray[np.float32]:
        self._rewarded.environment.reset()
        return self._rewarded.environment.obs_buf.numpy().copy()

    def step_async(self, actions: NDArray[np.float32]) -> None:
        self._actions = torch.from_numpy(actions)

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        observations, reward, ended, truncated, reached = self._rewarded.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in ended.nonzero().flatten().tolist():
            infos[row] = {
                "TimeLimit.truncated": bool(truncated[row]),
                "terminal_observation": reached[row].numpy(),
            }
        return observations.numpy(), reward.numpy(), ended.numpy(), infos

    def close(self) -> None:
        self._rewarded.environment.close()


def stable_baselines3(
    subject: Subject, settings: TrainingSettings, seed: int, iterations: int
) -> float:
    """Processor seconds of one Stable-Baselines3 training, without its set-up."""
    environment = VecNormalize(
        _SB3Environment(RewardedEnvironment(subject, settings.num_envs, seed)), norm_reward=False
    )
    activation = nn.ELU if settings.activation == "elu" else nn.Tanh
    rows = settings.horizon * settings.num_envs
    sizes = list(settings.hidden_sizes)
    model = PPO(
        "MlpPolicy",
        environment,
        n_steps=settings.horizon,
        batch_size=rows // settings.minibatches,
        n_epochs=settings.epochs,
        learning_rate=3e-4,
        seed=seed,
        device="cpu",
        policy_kwargs={"net_arch": {"pi": sizes, "vf": sizes}, "activation_fn": activation},
    )
    began = time.process_time()
    model.learn(iterations * rows)
    return time.process_time() - began
