"""Unlock the door: turn its lock, which points down, to the right (+x)."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="unlock the door: turn its lock, which points down, to the right (+x)",
    fitness=fitness,
    fitness_doc=(
        "1 if the lock was turned in any step (its tip within 2 cm of the goal along x), else 0"
    ),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "door-unlock"},
    human_reward="rewards/door_unlock_human.py",
    training=TrainingBudget(env_steps=200_000, num_envs=32, overrides={"horizon": 32}),
)
