"""Sweep the block into the hole in the table."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="sweep the block into the hole in the table",
    fitness=fitness,
    fitness_doc=(
        "1 if the block was over the hole or in it in any step (within 5 cm of its middle along x"
        " and y), else 0"
    ),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "sweep-into"},
    human_reward="rewards/sweep_into_human.py",
    training=TrainingBudget(env_steps=400_000, num_envs=32, overrides={"horizon": 32}),
)
