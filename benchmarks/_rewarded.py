"""Environments of this package whose reward is computed at each step, as PPO libraries want it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX


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
    """Environments and the reward that pays them."""

    def __init__(
        self,
        environment: VecTask,
        arguments: Sequence[str],
        reward: Callable[[Mapping[str, Tensor]], Tensor],
    ) -> None:
        """`arguments`: what the reward reads; `reward`: its total, shape (num_envs,), from that."""
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
