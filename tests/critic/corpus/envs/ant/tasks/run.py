"""Run forward."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(velocity: Tensor) -> Tensor:
    """Metres of this step."""
    return velocity[:, 0] / 60.0


task = Task(
    sentence="run forward as fast as possible",
    fitness=fitness,
    fitness_doc="metres that the torso gets forward in an episode",
    fitness_unit="m",
)
