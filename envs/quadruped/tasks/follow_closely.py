"""Follow a velocity command closely: the same movement, measured in seconds of good following."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(
    commanded_velocity_b: Tensor,
    commanded_yaw_rate: Tensor,
    torso_velocity_b: Tensor,
    torso_angular_velocity_b: Tensor,
    terminated: Tensor,
) -> Tensor:
    """Seconds in this step: 0.02 where both errors are small. A fall forfeits the rest of an
    episode."""
    velocity_error = (torso_velocity_b[:, 0:2] - commanded_velocity_b).norm(dim=-1)
    turn_error = (torso_angular_velocity_b[:, 2] - commanded_yaw_rate).abs()
    follows = (velocity_error < 0.15) & (turn_error < 0.25)
    return 0.02 * (1.0 - terminated) * follows.float()


task = Task(
    sentence=(
        "make the quadruped keep to the commanded velocity and the commanded yaw rate as closely as"
        " it can, all the time"
    ),
    fitness=fitness,
    fitness_doc=(
        "seconds of 10 s that the robot follows its command: the torso's velocity ahead and left"
        " within 0.15 m/s of the commanded one, and its yaw rate within 0.25 rad/s; a fall ends the"
        " episode"
    ),
    fitness_unit="s",
    success_fitness=7.0,
    sparse_reward="rewards/closely_sparse.py",
    training=TrainingBudget(env_steps=1_000_000, num_envs=64, overrides={"horizon": 24}),
)
