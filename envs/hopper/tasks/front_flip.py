"""Flip forward: the front flip of Text2Reward (Xie et al. 2023), with a count of our own."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(front_flips: Tensor, previous_front_flips: Tensor) -> Tensor:
    """Flips forward that were landed in this step."""
    return front_flips - previous_front_flips


task = Task(
    sentence="make the hopper do front flips: turn over forward in the air and land on its foot",
    fitness=fitness,
    fitness_doc=(
        "flips forward in an episode of 8 s: turns in which only the foot touches the ground,"
        " landed on the foot with the torso upright; a torso near the ground ends the episode"
    ),
    fitness_unit="flips",
    success_fitness=1.0,
    options={"lowest_torso": 0.35, "ends_when_tipped": False},
    human_reward="rewards/front_flip_human.py",
    sparse_reward="rewards/front_flip_sparse.py",
    training=TrainingBudget(env_steps=500_000, num_envs=32),
)
