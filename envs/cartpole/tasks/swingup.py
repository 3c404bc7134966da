"""Swing a hanging pole up and keep it up."""

from __future__ import annotations

import math

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

CONTROL_DT = 0.02


def fitness(pole_upright: Tensor) -> Tensor:
    """Seconds of this step in which the pole is within 0.2 rad of upright."""
    return CONTROL_DT * (pole_upright > 0.98).float()


task = Task(
    sentence="swing the hanging pole up and balance it upright",
    fitness=fitness,
    fitness_doc=(
        "seconds of an episode (10 s at most) in which the pole is within 0.2 rad of upright;"
        " leaving the track ends the episode"
    ),
    fitness_unit="s",
    success_fitness=6.0,
    options={"start_angle": math.pi, "start_spread": 0.2, "ends_on_fall": False},
    human_reward="rewards/swingup_human.py",
    training=TrainingBudget(
        env_steps=300_000, num_envs=16, overrides={"entropy_coefficient": 0.005}
    ),
)
