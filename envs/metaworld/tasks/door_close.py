"""Push the open door shut."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="push the open door shut",
    fitness=fitness,
    fitness_doc=("1 if the door was shut in any step (handle within 8 cm of the goal), else 0"),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "door-close"},
    human_reward="rewards/door_close_human.py",
    training=TrainingBudget(env_steps=200_000, num_envs=32, overrides={"horizon": 32}),
)
