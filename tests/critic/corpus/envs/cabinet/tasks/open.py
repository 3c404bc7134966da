"""Open the drawer."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(cabinet_dof_pos: Tensor) -> Tensor:
    """1 where the drawer is open."""
    return (cabinet_dof_pos[:, 3] > 0.39).float()


task = Task(
    sentence="open the cabinet's top drawer",
    fitness=fitness,
    fitness_doc="1 where the drawer was open at some step of the episode",
    fitness_reduction="max",
)
