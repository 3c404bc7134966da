"""Lie down: a behaviour of Text2Reward (Xie et al. 2023), measured in a way of our own."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(
    torso_height: Tensor, torso_upright: Tensor, torso_velocity_w: Tensor, joint_velocities: Tensor
) -> Tensor:
    """Seconds in this step: 0.016 where the robot lies flat, less the faster it moves. So low and
    level, its feet are stretched out."""
    lies = (torso_height < 0.4) & (torso_upright > 0.95)
    speed = torso_velocity_w.norm(dim=-1)
    joint_speed = joint_velocities.abs().mean(dim=-1)
    return 0.016 * lies * torch.exp(-speed / 0.2 - joint_speed / 1.0)


task = Task(
    sentence="make the ant lie down flat with its legs stretched out, and lie still",
    fitness=fitness,
    fitness_doc=(
        "seconds of 8 s that the ant lies, torso lower than 0.4 m and level; moving counts less: a"
        " torso at 0.2 m/s, or joints at 1 rad/s on average, reduce a second to 0.37 s"
    ),
    fitness_unit="s",
    success_fitness=5.0,
    options={"lowest_torso": 0.0},
    human_reward="rewards/lie_down_human.py",
    sparse_reward="rewards/lie_down_sparse.py",
    training=TrainingBudget(env_steps=300_000, num_envs=32),
)
