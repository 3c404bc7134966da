"""Gymnasium environments with trainers of Stable-Baselines3: a whole program for a user's `main`.
Tried with Gymnasium 1.4.0 and Stable-Baselines3 2.9.2."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
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
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

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
    learner = _Learner(job, chosen, settings, normalize)
    if job.mode == "train":
        learner.train(job.trainings[0], [lambda: first, *[make] * (job.num_envs - 1)])
        return
    wanted = [each["episodes"] for each in job.fields.get("policies", ())]
    most = 1 if job.render_mode else min(job.num_envs, max(wanted, default=job.num_envs))
    batch = Batch([first, *(make() for _ in range(most - 1))])
    play(job, batch, lambda path: learner.load_policy(path, first))


class _Paid(DummyVecEnv):
    """Environments that a training's reward pays."""

    def __init__(self, makes: list[Any], training: Training, env_steps: int) -> None:
        super().__init__(makes)
        self._training, self._env_steps = training, env_steps

    def reset(self) -> Any:
        parts = ("training", self._training.seed, self._env_steps)
        self._seeds = [episode_seed(*parts, row) for row in range(self.num_envs)]
        observations = super().reset()
        self._training.begin(stacked([env.start for env in self.envs]), self._env_steps)
        return observations

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, _, dones, infos = super().step_wait()
        truncated = np.array([info["TimeLimit.truncated"] for info in infos])
        step = reached(self.envs, self.actions, dones & ~truncated, truncated)
        return observations, self._training.step(step).numpy(), dones, infos


class _Learner(BaseCallback):
    """The algorithm with its policy files and its states. As the callback of a training it saves
    what is due, and stops when the training was cancelled."""

    training: Training

    def __init__(self, job: Job, algorithm: Any, settings: dict[str, Any], normalize: Any) -> None:
        """See `main`."""
        super().__init__()
        self._job, self._algorithm = job, algorithm
        self._settings, self._normalize = settings, normalize

    def _make(self, venv: VecEnv, seed: int, **changes: Any) -> None:
        """Make the algorithm with new weights."""
        if self._normalize:
            given = self._normalize if isinstance(self._normalize, Mapping) else {}
            venv = VecNormalize(venv, **{"gamma": self._settings.get("gamma", 0.99), **given})
        is_dict = isinstance(venv.observation_space, spaces.Dict)
        policy = "MultiInputPolicy" if is_dict else "MlpPolicy"
        settings = {"policy": policy, "device": self._job.device, **self._settings, **changes}
        with blame("trainer"):
            self.model = self._algorithm(env=venv, seed=seed, **settings)

    def train(self, training: Training, makes: list[Callable[[], Watched]]) -> None:
        """Train with the reward, from the beginning or from a state."""
        self.training = training
        state = load_state(training.state) if training.state else {}
        env_steps = state.get("env_steps", 0)
        seed = episode_seed("algorithm", training.seed, env_steps)
        self._make(_Paid(makes, training, env_steps), seed)
        with blame("trainer"):
            if state:
                self.model.set_parameters(state["parameters"])
                for name, tensor in state["tensors"].items():
                    getattr(self.model, name).data.copy_(tensor)
                self._set_statistics(state["statistics"])
                self.model.num_timesteps, self.model._n_updates = env_steps, state["updates"]
            left = self._job.fields["env_steps"] - env_steps
            self.model.learn(left, self, reset_num_timesteps=False)
            training.end(self._save_policy)

    def _on_rollout_start(self) -> None:
        self._begun = self.training.env_steps

    def _on_step(self) -> bool:
        # the weights are those of the rollout's first step
        self.training.keep(self._save_policy, self._save_state, self._begun)
        return not self.training.cancelled

    def _save_policy(self, path: Path) -> None:
        save_arrays(path, {**self.model.policy.state_dict(), **self._statistics()})

    def _save_state(self, path: Path) -> None:
        """Save all that a training goes on from, apart from a replay buffer."""
        model = self.model
        tensors = {name: getattr(model, name).data for name in model._get_torch_save_params()[1]}
        state = {"env_steps": self._begun, "updates": model._n_updates, "tensors": tensors}
        state.update(parameters=model.get_parameters(), statistics=self._statistics())
        torch.save(state, path)

    def load_policy(self, path: Path, env: Watched) -> Callable[[Any], Any]:
        """Policy of a file, which acts without noise."""
        small = {"buffer_size": 1} if issubclass(self._algorithm, OffPolicyAlgorithm) else {}
        self._make(DummyVecEnv([lambda: env]), 0, **small)
        model, arrays = self.model, load_arrays(path)
        self._set_statistics(arrays)
        model.policy.load_state_dict({name: arrays[name] for name in model.policy.state_dict()})
        normalizer = model.get_vec_normalize_env()
        normalized = normalizer.normalize_obs if normalizer else lambda observations: observations
        return lambda observations: model.predict(normalized(observations), deterministic=True)[0]

    def _running(self) -> dict[str, tuple[Any, str]]:
        """Running statistics of VecNormalize: object and attribute by name in a file."""
        venv = self.model.get_vec_normalize_env()
        observed = getattr(venv, "obs_rms", {})
        named = {**observed} if isinstance(observed, dict) else {"": observed}
        if venv is not None:
            named["returns"] = venv.ret_rms
        pairs = itertools.product(named, ("mean", "var", "count"))
        return {f"{name}/{field}": (named[name], field) for name, field in pairs}

    def _statistics(self) -> dict[str, torch.Tensor]:
        found = self._running()
        return {name: torch.as_tensor(np.array(getattr(*at))) for name, at in found.items()}

    def _set_statistics(self, tensors: Mapping[str, torch.Tensor]) -> None:
        for name, (each, field) in self._running().items():
            setattr(each, field, tensors[name].numpy().copy())
