"""Keep the ball at rest in the tray's middle: Eureka's BallBalance (Ma et al. 2023), whose metric
counts all steps in which the ball has not fallen; here only those at rest in the middle count."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

CONTROL_DT = 0.02
NEAR = 0.1
SLOW = 0.1


def fitness(middle_distance: Tensor, ball_speed: Tensor) -> Tensor:
    """Seconds of this step within 0.1 m of the middle at less than 0.1 m/s."""
    return CONTROL_DT * ((middle_distance < NEAR) & (ball_speed < SLOW)).float()


task = Task(
    sentence="balance the ball: bring it to rest in the middle of the tray and keep it there",
    fitness=fitness,
    fitness_doc=(
        "seconds of an episode (10 s at most) in which the ball is within 0.1 m of the tray's"
        " middle and slower than 0.1 m/s; a ball that falls ends the episode"
    ),
    fitness_unit="s",
    success_fitness=7.0,
    training=TrainingBudget(env_steps=500_000, num_envs=32),
)
