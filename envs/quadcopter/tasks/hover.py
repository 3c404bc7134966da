"""Fly to the goal and stay there."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

CONTROL_DT = 0.02
NEAR = 0.2


def fitness(goal_distance: Tensor) -> Tensor:
    """Seconds of this step within 0.2 m of the goal."""
    return CONTROL_DT * (goal_distance < NEAR).float()


task = Task(
    sentence="fly the quadcopter to the goal position and hover there",
    fitness=fitness,
    fitness_doc=(
        "seconds of an episode (10 s at most) within 0.2 m of the goal; hitting the ground or"
        " flying away ends the episode"
    ),
    fitness_unit="s",
    success_fitness=7.0,
    options={"goal_spread": 1.0},
    training=TrainingBudget(
        env_steps=200_000, num_envs=16, gpu={"num_envs": 512, "env_steps": 4_000_000}
    ),
)
