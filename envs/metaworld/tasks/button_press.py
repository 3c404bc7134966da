"""Press the button in the front of the box, along +y."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(success: Tensor) -> Tensor:
    """MetaWorld's own criterion."""
    return success


task = Task(
    sentence="press the button in the front of the box, along +y",
    fitness=fitness,
    fitness_doc=(
        "1 if the button was pressed in any step (within 2 cm of the goal along y), else 0"
    ),
    fitness_reduction="max",
    success_fitness=1.0,
    options={"task": "button-press"},
    human_reward="rewards/button_press_human.py",
    training=TrainingBudget(env_steps=200_000, num_envs=32, overrides={"horizon": 32}),
)
