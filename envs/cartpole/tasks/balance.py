"""Keep a pole that starts near upright from falling."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

CONTROL_DT = 0.02


def fitness(pole_upright: Tensor) -> Tensor:
    """Seconds of this step in which the pole is within 0.2 rad of upright."""
    return CONTROL_DT * (pole_upright > 0.98).float()


task = Task(
    sentence="balance the pole upright",
    fitness=fitness,
    fitness_doc=(
        "seconds of an episode (10 s at most) in which the pole is within 0.2 rad of upright;"
        " falling or leaving the track ends the episode"
    ),
    fitness_unit="s",
    success_fitness=9.5,
    options={"start_angle": 0.0, "start_spread": 0.2, "ends_on_fall": True},
    human_reward="rewards/balance_human.py",
    training=TrainingBudget(
        env_steps=60_000, num_envs=16, gpu={"num_envs": 512, "env_steps": 2_000_000}
    ),
)
