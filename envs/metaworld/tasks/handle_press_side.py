"""Press the handle, which is to the left of the hand, down."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="press the handle, which is to the left of the hand, down",
    fitness=fitness,
    fitness_doc=(
        "1 if the handle was pressed down in any step (within 2 cm of the goal's height), else 0"
    ),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "handle-press-side"},
    human_reward="rewards/handle_press_human.py",
    training=TrainingBudget(env_steps=200_000, num_envs=32, overrides={"horizon": 32}),
)
