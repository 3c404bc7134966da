"""Hover at the target."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(root_positions: Tensor, target_root_positions: Tensor) -> Tensor:
    """1 within 0.3 m of the target."""
    return ((root_positions - target_root_positions).norm(dim=-1) < 0.3).float()


task = Task(
    sentence="fly to the target and hover there",
    fitness=fitness,
    fitness_doc="steps of an episode within 0.3 m of the target",
)
