"""Flip backward: the back flip of Text2Reward (Xie et al. 2023), with a count of our own."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(back_flips: Tensor, previous_back_flips: Tensor) -> Tensor:
    """Flips backward that were landed in this step."""
    return back_flips - previous_back_flips


task = Task(
    sentence="make the hopper do back flips: turn over backward in the air and land on its foot",
    fitness=fitness,
    fitness_doc=(
        "flips backward in an episode of 8 s: turns in which only the foot touches the ground,"
        " landed on the foot with the torso upright; a torso near the ground ends the episode"
    ),
    fitness_unit="flips",
    success_fitness=1.0,
    options={"lowest_torso": 0.35, "ends_when_tipped": False},
    human_reward="rewards/back_flip_human.py",
    sparse_reward="rewards/back_flip_sparse.py",
    training=TrainingBudget(env_steps=500_000, num_envs=32),
)
