"""Turn the cube."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(object_rot: Tensor, goal_rot: Tensor) -> Tensor:
    """1 where the cube is within about 0.4 rad of the goal."""
    return ((object_rot * goal_rot).sum(dim=-1).abs() > 0.98).float()


task = Task(
    sentence="turn the cube in the hand to the goal orientation",
    fitness=fitness,
    fitness_doc="steps of an episode in which the cube is within 0.4 rad of the goal orientation",
)
