"""Keep the pole upright."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.task import Task


def fitness(pole_angle: Tensor) -> Tensor:
    """1 within 0.2 rad of upright."""
    return (torch.abs(pole_angle) < 0.2).float()


task = Task(
    sentence="balance the pole upright",
    fitness=fitness,
    fitness_doc="steps of an episode in which the pole is within 0.2 rad of upright",
)
