"""Steps of random actions, copied into plain tensors, for the conformance checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX


@dataclass(frozen=True)
class RecordedStep:
    """One control step of all rows, copied."""

    observations: Tensor
    values: dict[str, Tensor]
    """Variables and their `previous_` values by argument name."""
    terminated: Tensor
    truncated: Tensor


def random_actions(num_envs: int, num_actions: int, steps: int, seed: int) -> Tensor:
    """Gaussian actions, a third of them out of bounds. Shape: (steps, num_envs, num_actions)."""
    return torch.randn(steps, num_envs, num_actions, generator=torch.Generator().manual_seed(seed))


def actions_for(environment: VecTask, steps: int, seed: int) -> Tensor:
    """`random_actions` of an environment, or choices."""
    size = environment.num_envs, environment.num_actions
    return as_choices(environment, random_actions(*size, steps, seed))


def as_choices(environment: VecTask, gaussian: Tensor) -> Tensor:
    """Equally frequent choices from Gaussian numbers, if any. Shape of both: (…, num_actions)."""
    if not environment.action_choices:
        return gaussian
    return environment.actions_from(torch.special.ndtr(gaussian))


def copied_variables(environment: VecTask) -> dict[str, Tensor]:
    """Copies of the variables of the current state."""
    return {name: value.clone() for name, value in environment.read_variables().items()}


def run(environment: VecTask, actions: Tensor) -> Iterator[RecordedStep]:
    """Make steps of `actions`, shape (steps, num_envs, num_actions), then reset ended rows."""
    previous = copied_variables(environment)
    for step_actions in actions:
        transition = environment.advance(step_actions.to(environment.device))
        values = {name: value.clone() for name, value in transition.variables.items()}
        yield RecordedStep(
            transition.observations.clone(),
            {**values, **{PREVIOUS_PREFIX + name: value for name, value in previous.items()}},
            transition.terminated.clone(),
            transition.truncated.clone(),
        )
        environment.reset_done()
        previous = copied_variables(environment)
