"""Gymnasium environments one by one, and batches of them. Tried with Gymnasium 1.4.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import gymnasium
import numpy as np
from gymnasium import spaces

from eureka_adapter.episodes import Step
from eureka_adapter.faults import Fault, blame
from eureka_adapter.job import Job, Variable

Values = Union[Callable[[gymnasium.Env], Mapping[str, Any]], Mapping[str, Any]]
"""Function that gives the values by variable; or places in the observation by variable: an index, a
slice, a list of indices or, in a Dict, a key."""
Cause = Callable[[gymnasium.Env], Union[str, None]]


class Watched(gymnasium.Wrapper):
    """An environment with actions in [-1, 1] that keeps the values of its states."""

    start: Mapping[str, Any]
    """Values of the last start state."""
    reached: Mapping[str, Any]
    """Values of the state that the last step reached."""
    cause: str | None = None
    """The end that the last step came to, if it terminated."""

    def __init__(
        self,
        env: gymnasium.Env,
        values: Values,
        cause: Cause = lambda env: None,
        max_episode_length: int | None = None,
    ) -> None:
        """`max_episode_length`: where the environment has none or a higher one. Raises Fault."""
        self._own, self._values, self._cause = env, values, cause
        limits = (max_episode_length, env.spec.max_episode_steps if env.spec else None)
        length = min(filter(None, limits), default=None)
        if length is None:
            raise Fault(f"the episodes of {env} have no limit", "give `max_episode_length`")
        if max_episode_length is not None:
            env = gymnasium.wrappers.TimeLimit(env, max_episode_length)
        if isinstance(env.action_space, spaces.Box):
            if not env.action_space.is_bounded():
                hint = "wrap the environment so that its actions have bounds"
                raise Fault(f"the actions are {env.action_space}, expected finite bounds", hint)
            env = gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1))
        super().__init__(env)
        self.max_episode_length: int = length

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        with blame("environment"):
            observation, info = self.env.reset(**options)
            self.start = self._read(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step."""
        with blame("environment"):
            observation, reward, terminated, truncated, info = self.env.step(action)
            self.reached = self._read(observation)
            self.cause = self._cause(self._own) if terminated else None
        return observation, reward, terminated, truncated, info

    def _read(self, observation: Any) -> dict[str, Any]:
        if callable(self._values):
            return {name: np.array(each) for name, each in self._values(self._own).items()}
        return {name: np.array(observation[place]) for name, place in self._values.items()}


def describe(
    job: Job, env: Watched, variables: Sequence[Variable], control_dt: float | None, **more: Any
) -> None:
    """Describe an environment to the job. `control_dt`: where the environment does not know it."""
    space, choices = env.action_space, []
    if isinstance(space, spaces.Discrete):
        choices = [int(space.n)]
    elif isinstance(space, spaces.MultiDiscrete):
        choices = space.nvec.reshape(-1).tolist()
    rate = env.metadata.get("render_fps")
    control_dt = control_dt or getattr(env.unwrapped, "dt", None) or (rate and 1 / rate)
    if control_dt is None:
        raise Fault("the environment has neither `dt` nor `render_fps`", "give `control_dt`")
    film = "rgb_array" in (env.metadata.get("render_modes") or ())
    more["can"] = {"film": film, **more.get("can", {})}
    more |= {"action_choices": choices, "num_actions": len(choices) or spaces.flatdim(space)}
    more |= {"control_dt": control_dt, "max_episode_length": env.max_episode_length}
    job.described(variables, num_observations=spaces.flatdim(env.observation_space), **more)


class Batch:
    """Environments one by one, for `play`. A row that has ended waits for the next reset."""

    def __init__(self, envs: Sequence[Watched]) -> None:
        self._envs, self.num_envs = envs, len(envs)

    def reset(self, seeds: list[int]) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every row."""
        self._ended = np.zeros((2, self.num_envs), dtype=bool)
        self._seen = [env.reset(seed=seed)[0] for env, seed in zip(self._envs, seeds)]
        return stacked(self._seen), stacked([env.start for env in self._envs])

    def step(self, actions: Any) -> Step:
        """Take a step in the rows that have not ended."""
        for row in np.flatnonzero(~self._ended.any(axis=0)):
            space, action = self._envs[row].action_space, np.asarray(actions[row])
            action = action.reshape(space.shape).astype(space.dtype)
            self._seen[row], _, *self._ended[:, row], _ = self._envs[row].step(action)
        return reached(self._envs, actions, *self._ended.copy(), stacked(self._seen))

    def render(self, row: int) -> Any:
        """Picture of a row."""
        return self._envs[row].render()


def stacked(rows: Sequence[Any]) -> Any:
    """Arrays of all rows in one, or a dict of such arrays."""
    if isinstance(rows[0], Mapping):
        return {name: np.stack([each[name] for each in rows]) for name in rows[0]}
    return np.stack(rows)


def reached(
    envs: Sequence[Watched], actions: Any, terminated: Any, truncated: Any, observations: Any = None
) -> Step:
    """The step that these environments took."""
    values, start = (stacked([getattr(env, at) for env in envs]) for at in ("reached", "start"))
    named = sorted({env.cause for env in envs if env.cause})
    causes = {name: [env.cause == name for env in envs] for name in named}
    return Step(values, actions, terminated, truncated, causes, start, observations)
