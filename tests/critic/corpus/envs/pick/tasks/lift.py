"""Bring the cube to the goal."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(cube_pos: Tensor, goal_pos: Tensor) -> Tensor:
    """Minus the distance to the goal."""
    return -(cube_pos - goal_pos).norm(dim=-1)


task = Task(
    sentence="pick up the cube and bring it to the goal",
    fitness=fitness,
    fitness_doc="minus the cube's distance to the goal at the end",
    fitness_unit="m",
    fitness_reduction="last",
)
