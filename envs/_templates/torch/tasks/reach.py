"""One task is one file; its name is the file's."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(goal_distance: Tensor) -> Tensor:
    """CHANGE: the number that decides, for each row of one step. Designers are told `fitness_doc`,
    never this code."""
    return 0.05 * (goal_distance < 0.1).float()


task = Task(
    sentence="push the puck to the goal and keep it there",  # CHANGE
    fitness=fitness,
    fitness_doc="seconds of an episode (5 s) in which the puck is within 0.1 m of the goal",
    fitness_unit="s",
    fitness_reduction="sum",  # of the episode's steps; or "mean", "last", "max"
    success_fitness=3.0,  # an episode counts as solved from here on; None where none does
    options={"goal_spread": 1.0},  # arguments of the environment's __init__
    training=TrainingBudget(env_steps=100_000, num_envs=16),
)
