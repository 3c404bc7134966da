"""One training by Stable-Baselines3's PPO (Raffin et al. 2021), with its own settings, normalised
observations and rewards, as its zoo trains MuJoCo's robots; the reward in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from torch import Tensor, nn

from eureka_agent.boundary.commands import Prove
from eureka_agent.boundary.events import Proved
from eureka_agent.errors import EurekaError
from eureka_agent.libraries import PACKAGES
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.user_modules import TimeLimitError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.members import REWARD_TIMEOUT
from eureka_agent.training.policy import policy_bytes
from eureka_agent.worker.channel import File
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward

ROLLOUT = 2048
"""Steps between two updates, over all environments: the library's own number."""
_NO_NOISE = -20.0
"""Logarithm of a deviation that changes no action."""
_ACTIVATIONS = {"elu": nn.ELU, "tanh": nn.Tanh}


class Step(NamedTuple):
    """One step of all environments. The first dimension is the environment."""

    observations: Tensor
    """After resets, shape (num_envs, num_observations)."""
    reward: Tensor
    ended: Tensor
    """True where the episode ended, also by its time."""
    truncated: Tensor
    reached: Tensor
    """Observations before resets."""


class RewardedEnvironment:
    """An environment whose reward is computed at every step, as PPO libraries want it."""

    def __init__(
        self,
        environment: VecTask,
        arguments: Sequence[str],
        reward: Callable[[Mapping[str, Tensor]], Tensor],
    ) -> None:
        """`arguments`: what the reward reads, `reward`: its total, shape (num_envs,), from that."""
        self.environment = environment
        self._arguments = tuple(arguments)
        self._reward = reward
        environment.reset()
        self._previous = self._copies()

    def _copies(self) -> dict[str, Tensor]:
        found = self.environment.read_variables()
        names = (each for each in self._arguments if each.startswith(PREVIOUS_PREFIX))
        return {name: found[name.removeprefix(PREVIOUS_PREFIX)].clone() for name in names}

    def step(self, actions: Tensor) -> Step:
        """Act in all environments; those that ended begin anew. Shape: (num_envs, num_actions)."""
        transition = self.environment.advance(actions)
        now, before = transition.variables, self._previous
        values = {name: (before if name in before else now)[name] for name in self._arguments}
        total = self._reward(values)
        ended, truncated = self.environment.reset_buf.clone(), transition.truncated.clone()
        reached = transition.observations.clone()
        observations = self.environment.reset_done().clone()
        self._previous = self._copies()
        return Step(observations, total, ended, truncated, reached)


class RewardedVecEnv(VecEnv):
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

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any
    ) -> list[Any]:
        raise NotImplementedError


def made(environment: VecNormalize, settings: TrainingSettings, seed: int, **changes: Any) -> PPO:
    """Its learner, with our environments, networks, discount and first action noise."""
    sizes = list(settings.hidden_sizes)
    values: dict[str, Any] = {"gamma": settings.discount}
    values["n_steps"] = max(1, ROLLOUT // environment.num_envs)
    values["policy_kwargs"] = {
        "net_arch": {"pi": sizes, "vf": sizes},
        "activation_fn": _ACTIVATIONS[settings.activation],
        "log_std_init": float(np.log(settings.initial_action_std)),
    }
    return PPO("MlpPolicy", environment, seed=seed, device="cpu", **(values | changes))


def policy_of(model: PPO, environment: VecNormalize) -> dict[str, Tensor]:
    """Tensors of its policy in this package's form. It acts as in the library, by the clipped mean;
    ours act by the mean of the clipped actions, which is the same without noise."""
    statistics = environment.obs_rms
    deviation = np.sqrt(statistics.var + environment.epsilon)
    tensors: dict[str, Tensor] = {
        "observation_mean": torch.from_numpy(statistics.mean).float(),
        "observation_deviation": torch.from_numpy(deviation).float(),
    }
    distribution = distribution_of(environment.venv._rewarded.environment)
    if distribution.parameter:
        tensors[distribution.parameter] = torch.full((distribution.num_parameters,), _NO_NOISE)
    layers = [each for each in model.policy.mlp_extractor.policy_net if isinstance(each, nn.Linear)]
    for index, linear in enumerate([*layers, model.policy.action_net]):
        tensors[f"policy.{index}.weight"] = linear.weight.detach().T.contiguous()
        tensors[f"policy.{index}.bias"] = linear.bias.detach().unsqueeze(0)
    return tensors


def train(
    rewarded: RewardedEnvironment, settings: TrainingSettings, seed: int
) -> dict[str, Tensor]:
    """Tensors of the last `Policy` of a training of `settings.env_steps`; see `made`."""
    environment = VecNormalize(RewardedVecEnv(rewarded), gamma=settings.discount)
    model = made(environment, settings, seed)
    model.learn(settings.env_steps)
    return policy_of(model, environment)


def prove(
    command: Prove, loaded: LoadedEnvironment, task: Task, nursery: Nursery
) -> list[File | Proved]:
    """Train, and send the last policy. Raises EurekaError for a reward that fails."""
    settings, cls = command.settings, loaded.environment_class
    environment = loaded.make(task, settings.num_envs, seed=command.seed)
    try:
        reward = RemoteReward.on(cls, nursery, command.reward, settings.num_envs)
        try:

            def total(values: Mapping[str, Tensor]) -> Tensor:
                return reward.begin(values, REWARD_TIMEOUT)()[0]

            rewarded = RewardedEnvironment(environment, reward.arguments, total)
            began = time.perf_counter()
            tensors = train(rewarded, settings, command.seed)
            seconds = time.perf_counter() - began
        finally:
            reward.close()
    except TimeLimitError as error:
        raise EurekaError(f"the reward {error}", "make it quicker") from None
    finally:
        environment.close()
    metadata = {"activation": settings.activation, **distribution_of(cls).metadata}
    file = File(f"{command.job}.safetensors", policy_bytes(tensors, metadata))
    library = f"{PACKAGES[command.library][1]} {version(PACKAGES[command.library][1])}"
    return [file, Proved(job=command.job, policy=file.name, seconds=seconds, library=library)]
