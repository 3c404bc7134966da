"""Random-action steps of an environment, copied into plain tensors: what the conformance checks
look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX


@dataclass(frozen=True)
class RecordedStep:
    """One control step of all rows. Everything is a copy."""

    observations: Tensor
    values: dict[str, Tensor]
    """All variables and their `previous_` values by argument name."""
    terminated: Tensor
    truncated: Tensor


def random_actions(num_envs: int, num_actions: int, steps: int, seed: int) -> Tensor:
    """Gaussian actions, of which about a third is beyond the bounds. Shape: (steps, num_envs,
    num_actions)."""
    return torch.randn(steps, num_envs, num_actions, generator=torch.Generator().manual_seed(seed))


def actions_for(environment: VecTask, steps: int, seed: int) -> Tensor:
    """`random_actions` for all rows of an environment, or choices."""
    size = environment.num_envs, environment.num_actions
    return as_choices(environment, random_actions(*size, steps, seed))


def as_choices(environment: VecTask, gaussian: Tensor) -> Tensor:
    """Where actions are choices, equally many of each in place of Gaussian numbers. Shape of both:
    (…, num_actions)."""
    if not environment.action_choices:
        return gaussian
    return environment.actions_from(torch.special.ndtr(gaussian))


def copied_variables(environment: VecTask) -> dict[str, Tensor]:
    """The variables of the current state, as copies."""
    return {name: value.clone() for name, value in environment.read_variables().items()}


def run(environment: VecTask, actions: Tensor) -> Iterator[RecordedStep]:
    """Step through `actions`, shape (steps, num_envs, num_actions); rows that end are reset after
    their step is recorded."""
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
