"""Follow a velocity command."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

EPISODE_S = 10.0
STEP_S = 0.02


def fitness(
    commanded_velocity_b: Tensor,
    commanded_yaw_rate: Tensor,
    torso_velocity_b: Tensor,
    torso_angular_velocity_b: Tensor,
    time_left: Tensor,
    terminated: Tensor,
) -> Tensor:
    """This step's share of the negative mean error of an episode.

    The error is that of Eureka's metric for the Anymal (Ma et al. 2023): the squares of the
    velocity errors ahead and to the left, and of the error of the yaw rate. A fall also counts the
    time that is left, with the error of a robot that stands still and 1 on top: else the mean of a
    short episode could be better than that of a full one.
    """
    ahead_and_left = (torso_velocity_b[:, 0:2] - commanded_velocity_b).square().sum(dim=-1)
    turn = (torso_angular_velocity_b[:, 2] - commanded_yaw_rate).square()
    standing = commanded_velocity_b.square().sum(dim=-1) + commanded_yaw_rate.square()
    lost = terminated * time_left * (standing + 1.0)
    return -(STEP_S * (ahead_and_left + turn) + lost) / EPISODE_S


task = Task(
    sentence=(
        "make the quadruped walk and turn as commanded: follow the commanded velocity and the"
        " commanded yaw rate"
    ),
    fitness=fitness,
    fitness_doc=(
        "negative mean over an episode of 10 s of the squared error of the torso's velocity (ahead"
        " and left, m²/s²) plus that of its yaw rate (rad²/s²); 0 is perfect, a robot that stands"
        " still gets -0.75 on average. The time that a fall cuts off counts with the error of"
        " standing still plus 1"
    ),
    success_fitness=-0.1,
    training=TrainingBudget(env_steps=1_000_000, num_envs=64, overrides={"horizon": 24}),
)
