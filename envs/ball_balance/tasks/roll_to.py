"""Roll the ball to four goals, one after the other."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

CONTROL_DT = 0.02
NEAR = 0.1
SLOW = 0.1


def fitness(goal_distance: Tensor, ball_speed: Tensor) -> Tensor:
    """Seconds of this step within 0.1 m of the goal at less than 0.1 m/s."""
    return CONTROL_DT * ((goal_distance < NEAR) & (ball_speed < SLOW)).float()


task = Task(
    sentence=(
        "bring the ball to the goal on the tray and keep it there; the goal changes every 2.5 s"
    ),
    fitness=fitness,
    fitness_doc=(
        "seconds of an episode (10 s at most) in which the ball is within 0.1 m of the goal and"
        " slower than 0.1 m/s; the goal changes its place every 2.5 s, and a ball that falls ends"
        " the episode"
    ),
    fitness_unit="s",
    success_fitness=4.0,
    options={"goal_radius": 0.3},
    human_reward="rewards/roll_to_human.py",
    sparse_reward="rewards/roll_to_sparse.py",
    training=TrainingBudget(env_steps=500_000, num_envs=32),
)
