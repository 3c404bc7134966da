"""Policies that act side by side, each in its own rows of an environment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.training.distributions import ActionDistribution, distribution_of


class Actor(Protocol):
    """Anything that acts on observations, such as a `Policy`."""

    distribution: ActionDistribution
    spread: Tensor

    @property
    def num_observations(self) -> int: ...

    def outputs(self, observations: Tensor) -> Tensor:
        """Input of its distribution's `mode`. Shape: (batch, num_outputs)."""
        ...


def check_sizes(policy: Actor, environment: VecTask | type[VecTask]) -> None:
    """Raise EnvironmentLoadError for a policy of another environment."""
    needed = environment.num_observations, distribution_of(environment)
    if (policy.num_observations, policy.distribution) != needed:
        raise EnvironmentLoadError(
            f"the policy takes {policy.num_observations} observations and gives"
            f" {policy.distribution}, the environment has {needed[0]} and {needed[1]}",
            "evaluate it on the environment that it was trained on",
        )


class ActingPolicies:
    """A network call for each policy, then one distribution call for all, in which each policy's
    rows begin at a multiple of torch's SIMD width, for equal rounding."""

    def __init__(self, policies: Sequence[Actor], rows: Sequence[slice], env: VecTask) -> None:
        """`rows`: each policy's in the environment. Raises as `check_sizes`."""
        for policy in policies:
            check_sizes(policy, env)
        places, count = [], 0
        for part in rows:
            places.append(slice(count, count + part.stop - part.start))
            count += padded(part.stop - part.start, VecTask.row_multiple)
        self._policies = policies
        self._rows = rows
        self._distribution = distribution = distribution_of(env)
        self._outputs = torch.zeros(count, distribution.num_outputs, device=env.device)
        self._spreads = torch.ones(count, distribution.num_parameters, device=env.device)
        self._places = places
        taken_from = torch.zeros(env.num_envs, dtype=torch.int64)
        for policy, part, place in zip(policies, rows, places, strict=True):
            self._spreads[place] = policy.spread
            taken_from[part] = torch.arange(place.start, place.stop)
        self._taken_from = taken_from.to(env.device)

    def act(self, observations: Tensor, acting: Collection[int]) -> Tensor:
        """Actions of all rows, shape (num_envs, num_actions); only those of the policies `acting`,
        by their place, are new."""
        for number in acting:
            outputs = self._policies[number].outputs(observations[self._rows[number]])
            self._outputs[self._places[number]] = outputs
        actions = self._distribution.mode(self._outputs, self._spreads)
        return actions.index_select(0, self._taken_from)
