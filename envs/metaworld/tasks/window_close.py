"""Slide the window shut by its handle, to the left (-x)."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="slide the window shut by its handle, to the left (-x)",
    fitness=fitness,
    fitness_doc=(
        "1 if the window was shut in any step (handle within 5 cm of the goal along x), else 0"
    ),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "window-close"},
    human_reward="rewards/window_close_human.py",
    training=TrainingBudget(env_steps=200_000, num_envs=32, overrides={"horizon": 32}),
)
