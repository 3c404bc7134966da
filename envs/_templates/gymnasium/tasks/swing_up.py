"""One task is one file; its name is the file's. Without any file here, the task is the
environment's own reward."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(tip_position: Tensor) -> Tensor:
    """CHANGE: the number that decides, for each row of one step. Designers are told `fitness_doc`,
    never this code."""
    return 0.05 * (tip_position[:, 0] > 0.95).float()


task = Task(
    sentence="swing the pole up and keep it upright",  # CHANGE
    fitness=fitness,
    fitness_doc="seconds of an episode (10 s) in which the pole's tip is higher than 0.95 m",
    fitness_unit="s",
    fitness_reduction="sum",  # of the episode's steps; or "mean", "last", "max"
    success_fitness=6.0,  # an episode counts as solved from here on; None where none does
    training=TrainingBudget(env_steps=100_000, num_envs=16),
)
