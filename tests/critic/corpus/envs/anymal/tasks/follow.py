"""Follow the commanded velocity."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.task import Task


def fitness(base_lin_vel: Tensor, commands: Tensor) -> Tensor:
    """Closeness to the commanded velocity."""
    error = (base_lin_vel[:, :2] - commands[:, :2]).square().sum(dim=-1)
    return torch.exp(-4.0 * error)


task = Task(
    sentence="walk at the commanded velocity",
    fitness=fitness,
    fitness_doc="mean over an episode of exp(-4 × the squared error of the velocity)",
    fitness_reduction="mean",
)
