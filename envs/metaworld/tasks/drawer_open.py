"""Open the drawer by pulling its handle out."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="open the drawer by pulling its handle out",
    fitness=fitness,
    fitness_doc=(
        "1 if the drawer was pulled out fully in any step (handle within 3 cm of the goal, 0.2 m"
        " in front of where it is when closed), else 0"
    ),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "drawer-open"},
    human_reward="rewards/drawer_open_human.py",
    training=TrainingBudget(env_steps=200_000, num_envs=32, overrides={"horizon": 32}),
)
