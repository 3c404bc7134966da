"""Gymnasium environments with trainers of Stable-Baselines3: a whole program for a user's `main`.
Tried with Gymnasium 1.4.0 and Stable-Baselines3 2.9.2."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from eureka_adapter.episodes import play
from eureka_adapter.faults import blame
from eureka_adapter.gymnasium_envs import Batch, Cause, Values, Watched, describe, reached, stacked
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.training import Training, load_arrays, load_state, save_arrays

STEPS_OF_A_ROLLOUT = 2048
PACKAGES = ("gymnasium", "stable-baselines3", "torch", "numpy")


def main(
    make_env: Callable[[Job], gymnasium.Env],
    variables: Sequence[Variable],
    values: Values,
    *,
    algorithm: str | type[BaseAlgorithm] = "PPO",
    hyperparameters: Mapping[str, Any] | None = None,
    normalize: bool | Mapping[str, Any] = False,
    cause: Cause = lambda env: None,
    control_dt: float | None = None,
    max_episode_length: int | None = None,
    argv: Sequence[str] | None = None,
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for. `make_env`: one environment, with
    `render_mode=job.render_mode`. `hyperparameters`: arguments of the algorithm, `policy` among
    them. `normalize`: True or arguments of VecNormalize. `cause`: one of `ends`, for an environment
    that has just terminated. `description`: other fields of `Job.described`."""
    job = Job.open(argv)
    if job.device == "cpu":
        torch.set_num_threads(1)  # sums in another order would make another training

    def make() -> Watched:
        return Watched(make_env(job), values, cause, max_episode_length)

    first = make()
    describe(job, first, variables, control_dt, **{"versions": PACKAGES, **description})
    chosen = getattr(stable_baselines3, algorithm) if isinstance(algorithm, str) else algorithm
    settings = dict(hyperparameters or {})
    if chosen is stable_baselines3.PPO:
        # its own default counts for each environment
        settings.setdefault("n_steps", max(STEPS_OF_A_ROLLOUT // job.num_envs, 1))
    given = normalize if isinstance(normalize, Mapping) else {}
    normalization = {"gamma": settings.get("gamma", 0.99), **given} if normalize else None
    learner = _Learner(job, chosen, settings, normalization)
    if job.mode == "train":
        learner.train(job.trainings[0], [lambda: first, *[make] * (job.num_envs - 1)])
        return
    most = 1 if job.mode == "film" else job.num_envs
    if job.mode == "evaluate":
        most = min(most, max(each["episodes"] for each in job.fields["policies"]))
    batch = Batch([first, *(make() for _ in range(most - 1))])
    play(job, batch, lambda path: learner.policy(path, first))


class _Rewarded(VecEnvWrapper):
    """Environments that a training's reward pays."""

    def __init__(self, venv: DummyVecEnv, training: Training, env_steps: int) -> None:
        super().__init__(venv)
        self._training, self._env_steps = training, env_steps
        self._envs: Sequence[Any] = venv.envs

    def reset(self) -> Any:
        parts = ("training", self._training.seed, self._env_steps)
        self.venv._seeds = [episode_seed(*parts, row) for row in range(self.num_envs)]
        observations = self.venv.reset()
        self._training.begin(stacked([env.start for env in self._envs]), self._env_steps)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, _, dones, infos = self.venv.step_wait()
        truncated = np.array([info["TimeLimit.truncated"] for info in infos])
        step = reached(self._envs, self._actions, dones & ~truncated, truncated)
        reward = self._training.step(step)
        return observations, reward.numpy(), dones, infos


class _Keeper(BaseCallback):
    """Saves what is due, and stops a training that was cancelled."""

    def __init__(self, learner: _Learner, training: Training) -> None:
        super().__init__()
        self._learner, self._training = learner, training

    def _on_rollout_start(self) -> None:
        self._begun = self._training.env_steps

    def _on_step(self) -> bool:
        # the weights are those of the rollout's first step
        save = self._learner
        self._training.keep(
            lambda path: save.save_policy(path, self.model),
            lambda path: save.save_state(path, self.model, self._begun),
            self._begun,
        )
        return not self._training.cancelled


@dataclass
class _Learner:
    """The algorithm with its settings, its policy files and its states."""

    job: Job
    algorithm: Any
    settings: dict[str, Any]
    normalization: dict[str, Any] | None

    def _made(self, venv: VecEnv, seed: int, **changes: Any) -> BaseAlgorithm:
        """Algorithm with new weights."""
        if self.normalization is not None:
            venv = VecNormalize(venv, **self.normalization)
        is_dict = isinstance(venv.observation_space, spaces.Dict)
        policy = "MultiInputPolicy" if is_dict else "MlpPolicy"
        settings = {"policy": policy, "device": self.job.device, **self.settings, **changes}
        with blame("trainer"):
            return self.algorithm(env=venv, seed=seed, **settings)

    def train(self, training: Training, makes: Sequence[Callable[[], Watched]]) -> None:
        """Train with the reward, from the beginning or from a state."""
        state = load_state(training.state) if training.state else {}
        env_steps = state.get("env_steps", 0)
        seed = episode_seed("algorithm", training.seed, env_steps)
        random.seed(seed)
        model = self._made(_Rewarded(DummyVecEnv(list(makes)), training, env_steps), seed)
        with blame("trainer"):
            if state:
                model.set_parameters(state["parameters"])
                for name, tensor in state["tensors"].items():
                    getattr(model, name).data.copy_(tensor)
                _set_statistics(model, state["statistics"])
                model.num_timesteps, model._n_updates = env_steps, state["updates"]
            left = self.job.fields["env_steps"] - env_steps
            model.learn(left, _Keeper(self, training), reset_num_timesteps=False)
            training.end(lambda path: self.save_policy(path, model))

    def save_policy(self, path: Path, model: BaseAlgorithm) -> None:
        """Write weights and statistics as arrays."""
        save_arrays(path, {**model.policy.state_dict(), **_statistics(model)})

    def save_state(self, path: Path, model: BaseAlgorithm, env_steps: int) -> None:
        """Write all that a training goes on from, apart from a replay buffer."""
        tensors = {name: getattr(model, name).data for name in model._get_torch_save_params()[1]}
        state = {"env_steps": env_steps, "updates": model._n_updates, "tensors": tensors}
        state.update(parameters=model.get_parameters(), statistics=_statistics(model))
        torch.save(state, path)

    def policy(self, path: Path, env: Watched) -> Callable[[Any], Any]:
        """Policy of a file, which acts without noise."""
        small = {"buffer_size": 1} if issubclass(self.algorithm, OffPolicyAlgorithm) else {}
        model = self._made(DummyVecEnv([lambda: env]), 0, **small)
        arrays = load_arrays(path)
        _set_statistics(model, arrays)
        model.policy.load_state_dict({name: arrays[name] for name in model.policy.state_dict()})
        normalizer = model.get_vec_normalize_env()

        def act(observations: Any) -> Any:
            if normalizer is not None:
                observations = normalizer.normalize_obs(observations)
            return model.predict(observations, deterministic=True)[0]

        return act


def _running(model: BaseAlgorithm) -> list[tuple[str, Any, str]]:
    """Running statistics of VecNormalize: name in a file, object, attribute."""
    venv = model.get_vec_normalize_env()
    observed = getattr(venv, "obs_rms", {})
    named = dict(observed) if isinstance(observed, dict) else {"": observed}
    if venv is not None:
        named["returns"] = venv.ret_rms
    fields = ("mean", "var", "count")
    return [(f"{name}/{field}", each, field) for name, each in named.items() for field in fields]


def _statistics(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    found = _running(model)
    return {name: torch.as_tensor(np.array(getattr(each, field))) for name, each, field in found}


def _set_statistics(model: BaseAlgorithm, tensors: Mapping[str, torch.Tensor]) -> None:
    for name, each, field in _running(model):
        setattr(each, field, tensors[name].numpy().copy())
