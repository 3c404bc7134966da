"""Gymnasium environments with trainers of Stable-Baselines3: a whole program for a user's `main`.

Tried with Gymnasium 1.4.0 and Stable-Baselines3 2.9.2."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import gymnasium
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from eureka_adapter.episodes import Step, play
from eureka_adapter.faults import EnvironmentFault, blame
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.training import Training, load_arrays, save_arrays

MakeEnv = Callable[[Job], gymnasium.Env]
Values = Union[Callable[[gymnasium.Env], Mapping[str, Any]], Mapping[str, Any]]
"""Values by variable of an environment, or places in the observation by variable: an index, a
slice, a list of indices or, for a Dict, a key."""
STEPS_OF_A_ROLLOUT = 2048
_STATISTICS = ("mean", "var", "count")


def main(
    make_env: MakeEnv,
    variables: Sequence[Variable],
    values: Values,
    *,
    algorithm: str | type[BaseAlgorithm] = "PPO",
    hyperparameters: Mapping[str, Any] | None = None,
    normalize: bool | Mapping[str, Any] = False,
    cause: Callable[[gymnasium.Env], str | None] = lambda env: None,
    control_dt: float | None = None,
    max_episode_length: int | None = None,
    argv: Sequence[str] | None = None,
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for. `make_env`: one environment, with
    `render_mode=job.render_mode`. `hyperparameters`: of the algorithm, `policy` among them.
    `normalize`: True or arguments of VecNormalize. `cause`: name of the end, one of `ends`, when
    an environment has terminated. `description`: more for `Job.described`."""
    job = Job.open(argv)
    if job.device == "cpu":
        torch.set_num_threads(1)  # sums in another order would make another training

    def make() -> _Watched:
        return _Watched(make_env(job), values, cause, max_episode_length)

    first = make()
    space, actions = first.observation_space, first.action_space
    choices = [int(actions.n)] if isinstance(actions, spaces.Discrete) else []
    if isinstance(actions, spaces.MultiDiscrete):
        choices = actions.nvec.reshape(-1).tolist()
    can = {"film": "rgb_array" in (first.metadata.get("render_modes") or [])}
    packages = ("gymnasium", "stable-baselines3", "torch", "numpy")
    job.described(
        variables,
        num_observations=spaces.flatdim(space),
        num_actions=len(choices) or spaces.flatdim(actions),
        action_choices=choices,
        control_dt=control_dt or first.control_dt,
        max_episode_length=first.max_episode_length,
        **{"versions": packages, **description, "can": {**can, **description.get("can", {})}},
    )
    learner = _Learner(job, algorithm, dict(hyperparameters or {}), normalize)
    if job.mode == "train":
        learner.train(job.trainings[0], [lambda: first] + [make] * (job.num_envs - 1))
    else:
        most = {
            "evaluate": max(
                (each["episodes"] for each in job.fields.get("policies") or []), default=1
            ),
            "film": 1,
        }
        count = min(job.num_envs, most.get(job.mode, job.num_envs))
        batch = _Batch([first, *(make() for _ in range(count - 1))])
        play(job, batch, lambda path: learner.policy(path, first))


class _Watched(gymnasium.Wrapper):
    """An environment with actions in [-1, 1] that keeps the values of its states."""

    def __init__(
        self,
        env: gymnasium.Env,
        values: Values,
        cause: Callable[[gymnasium.Env], str | None],
        max_episode_length: int | None,
    ) -> None:
        self._own, self._values, self._cause = env, values, cause
        limit = env.spec.max_episode_steps if env.spec else None
        if max_episode_length is not None and limit != max_episode_length:
            env = gymnasium.wrappers.TimeLimit(env, max_episode_length)
        self.max_episode_length = max_episode_length or limit
        if self.max_episode_length is None:
            raise EnvironmentFault("the episodes have no limit", "give `max_episode_length`")
        if isinstance(env.action_space, spaces.Box):
            if not env.action_space.is_bounded():
                raise EnvironmentFault(
                    f"the actions {env.action_space} have no bounds, expected finite ones",
                    "wrap the environment in gymnasium.wrappers.TransformAction",
                )
            env = gymnasium.wrappers.RescaleAction(env, -1.0, 1.0)
        super().__init__(env)
        rate = self.metadata.get("render_fps")
        dt = getattr(self.unwrapped, "dt", None) or (1.0 / rate if rate else None)
        self.control_dt = dt
        self.start: dict[str, Any] = {}
        self.reached: dict[str, Any] = {}
        self.cause: str | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        with blame("environment"):
            observation, info = self.env.reset(seed=seed, options=options)
            self.start = self._read(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        with blame("environment"):
            observation, reward, terminated, truncated, info = self.env.step(action)
            self.reached = self._read(observation)
            self.cause = self._cause(self._own) if terminated else None
        return observation, reward, terminated, truncated, info

    def _read(self, observation: Any) -> dict[str, Any]:
        found = self._values
        if callable(found):
            return {name: np.array(each) for name, each in found(self._own).items()}
        return {name: np.array(observation[place]) for name, place in found.items()}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.stack([each[name] for each in rows]) for name in rows[0]}


def _causes(envs: Sequence[_Watched], known: Mapping[str, str]) -> dict[str, list[bool]]:
    causes = [env.cause for env in envs]
    named = dict.fromkeys([*known, *(cause for cause in causes if cause)])
    return {name: [cause == name for cause in causes] for name in named if name != "terminated"}


class _Rewarded(VecEnvWrapper):
    """Environments that a training's reward pays."""

    def __init__(self, venv: DummyVecEnv, training: Training, env_steps: int) -> None:
        super().__init__(venv)
        self._training, self._env_steps = training, env_steps
        self._envs: list[_Watched] = venv.envs
        self._ends = training.job.description["ends"]

    def reset(self) -> Any:
        parts = ("training", self._training.seed, self._env_steps)
        self.venv._seeds = [episode_seed(*parts, row) for row in range(self.num_envs)]
        observations = self.venv.reset()
        self._training.begin(_columns([env.start for env in self._envs]), self._env_steps)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, _, dones, infos = self.venv.step_wait()
        truncated = np.array([info["TimeLimit.truncated"] for info in infos])
        reward = self._training.step(
            _columns([env.reached for env in self._envs]),
            self._actions,
            dones & ~truncated,
            truncated,
            _causes(self._envs, self._ends),
            _columns([env.start for env in self._envs]),
        )
        return observations, reward.numpy(), dones, infos


class _Batch:
    """Environments one by one, for `play`. A row that has ended waits for the next reset."""

    def __init__(self, envs: Sequence[_Watched]) -> None:
        self._envs, self.num_envs = list(envs), len(envs)

    def reset(self, seeds: list[int]) -> tuple[Any, dict[str, np.ndarray]]:
        self._last = [
            (env.reset(seed=seed)[0], False, False) for env, seed in zip(self._envs, seeds)
        ]
        return self._observations(), _columns([env.start for env in self._envs])

    def step(self, actions: Any) -> Step:
        for row, env in enumerate(self._envs):
            if not any(self._last[row][1:]):
                action = np.asarray(actions[row])
                wanted = env.action_space
                if isinstance(wanted, spaces.Discrete):
                    applied: Any = int(action.reshape(()))
                else:
                    applied = action.reshape(wanted.shape).astype(wanted.dtype)
                observation, _, terminated, truncated, _ = env.step(applied)
                self._last[row] = (observation, terminated, truncated)
        _, terminated, truncated = zip(*self._last)
        values = _columns([env.reached for env in self._envs])
        ends = _causes(self._envs, {})
        return Step(self._observations(), values, list(terminated), list(truncated), ends)

    def render(self, row: int) -> Any:
        return self._envs[row].render()

    def _observations(self) -> Any:
        found = [observation for observation, _, _ in self._last]
        return _columns(found) if isinstance(found[0], Mapping) else np.stack(found)


class _Keeper(BaseCallback):
    """Saves what is due, and stops a training that was cancelled."""

    def __init__(self, learner: _Learner, training: Training) -> None:
        super().__init__()
        self._learner, self._training = learner, training

    def _on_rollout_start(self) -> None:
        # the weights are those of this moment until the rollout is over
        self._begun = self._training.env_steps

    def _on_step(self) -> bool:
        learner = self._learner
        self._training.keep(
            lambda path: learner.save_policy(path, self.model),
            lambda path: learner.save_state(path, self.model, self._begun),
            self._begun,
        )
        return not self._training.cancelled


class _Learner:
    """The algorithm with its settings, its policy files and its states."""

    def __init__(
        self,
        job: Job,
        algorithm: str | type[BaseAlgorithm],
        hyperparameters: dict[str, Any],
        normalize: bool | Mapping[str, Any],
    ) -> None:
        self._job, self._settings = job, hyperparameters
        self._class: type[BaseAlgorithm] = (
            getattr(stable_baselines3, algorithm) if isinstance(algorithm, str) else algorithm
        )
        if self._class is stable_baselines3.PPO:
            self._settings.setdefault("n_steps", max(STEPS_OF_A_ROLLOUT // job.num_envs, 1))
        gamma = hyperparameters.get("gamma", 0.99)
        given = {} if isinstance(normalize, bool) else normalize
        self._normalize = {"gamma": gamma, **given} if normalize else None

    def _made(self, venv: VecEnv, seed: int, **changes: Any) -> BaseAlgorithm:
        """Algorithm with new weights."""
        if self._normalize:
            venv = VecNormalize(venv, **self._normalize)
        is_dict = isinstance(venv.observation_space, spaces.Dict)
        settings = {"policy": "MultiInputPolicy" if is_dict else "MlpPolicy", **self._settings}
        return self._class(env=venv, seed=seed, device=self._job.device, **{**settings, **changes})

    def train(self, training: Training, makes: Sequence[Callable[[], _Watched]]) -> None:
        """Train with the reward, from the beginning or from a state."""
        state = (
            torch.load(training.state, weights_only=True) if training.state else {"env_steps": 0}
        )
        env_steps, seed = state["env_steps"], episode_seed("algorithm", training.seed)
        if env_steps:
            seed = episode_seed("algorithm", training.seed, env_steps)
        random.seed(seed)
        venv = _Rewarded(DummyVecEnv(list(makes)), training, env_steps)
        with blame("trainer"):
            model = self._made(venv, seed)
            if env_steps:
                model.set_parameters(state["parameters"])
                for name, tensor in state["tensors"].items():
                    getattr(model, name).data.copy_(tensor)
                _set_statistics(model, state["statistics"])
                model.num_timesteps, model._n_updates = env_steps, state["updates"]
            left = self._job.fields["env_steps"] - env_steps
            model.learn(left, _Keeper(self, training), reset_num_timesteps=False)
            training.end(lambda path: self.save_policy(path, model))

    def save_policy(self, path: Path, model: BaseAlgorithm) -> None:
        """Write weights and statistics of the observations as arrays."""
        save_arrays(path, {**model.policy.state_dict(), **_statistics(model)})

    def save_state(self, path: Path, model: BaseAlgorithm, env_steps: int) -> None:
        """Write all that a training goes on from; a replay buffer begins empty then."""
        tensors = {name: getattr(model, name).data for name in model._get_torch_save_params()[1]}
        state = {"env_steps": env_steps, "updates": model._n_updates, "tensors": tensors}
        state.update(parameters=model.get_parameters(), statistics=_statistics(model))
        torch.save(state, path)

    def policy(self, path: Path, env: _Watched) -> Callable[[Any], Any]:
        """Actions without noise of a policy file."""
        small = {"buffer_size": 1} if issubclass(self._class, OffPolicyAlgorithm) else {}
        model = self._made(DummyVecEnv([lambda: env]), 0, **small)
        arrays = load_arrays(path)
        _set_statistics(model, arrays)
        weights = {name: arrays[name] for name in model.policy.state_dict()}
        model.policy.load_state_dict(weights)
        normalizer = model.get_vec_normalize_env()

        def act(observations: Any) -> Any:
            if normalizer is not None:
                observations = normalizer.normalize_obs(observations)
            return model.predict(observations, deterministic=True)[0]

        return act


def _running(model: BaseAlgorithm) -> dict[str, Any]:
    """Running statistics of VecNormalize by name."""
    venv = model.get_vec_normalize_env()
    if venv is None:
        return {}
    observed = getattr(venv, "obs_rms", {})
    named = observed if isinstance(observed, dict) else {"": observed}
    return {"returns": venv.ret_rms, **{f"observed {name}": each for name, each in named.items()}}


def _statistics(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    return {
        f"statistics/{name}/{field}": torch.as_tensor(np.asarray(getattr(each, field)))
        for name, each in _running(model).items()
        for field in _STATISTICS
    }


def _set_statistics(model: BaseAlgorithm, tensors: Mapping[str, torch.Tensor]) -> None:
    for name, each in _running(model).items():
        for field in _STATISTICS:
            setattr(each, field, tensors[f"statistics/{name}/{field}"].numpy().copy())
