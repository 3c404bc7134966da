"""One task is one file; its name is the file's."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(upright: Tensor) -> Tensor:
    """CHANGE: the number that decides, for each row of one step. Designers are told `fitness_doc`, never this code."""
    return 0.02 * (upright > 0.95).float()


task = Task(
    sentence="swing the pole up and keep it upright",  # CHANGE
    fitness=fitness,
    fitness_doc="seconds of an episode (10 s) in which the pole's upright projection is above 0.95",
    fitness_unit="s",
    fitness_reduction="sum",  # of the episode's steps; or "mean", "last", "max"
    success_fitness=6.0,  # an episode counts as solved from here on; None where none does
    training=TrainingBudget(env_steps=200_000, num_envs=16),
)
