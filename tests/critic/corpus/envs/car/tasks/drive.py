"""Drive well."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(speed: Tensor, min_pos: Tensor) -> Tensor:
    """Metres of this step while in the lane."""
    return 0.1 * speed * (min_pos < 1.0).float()


task = Task(
    sentence="drive along the lane at a safe, steady speed without a collision",
    fitness=fitness,
    fitness_doc="metres driven in an episode within 1 m of the lane's centre",
    fitness_unit="m",
)
