"""Explore tunnels with lava and come out alive."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(cells_seen: Tensor, steps_left: Tensor, terminated: Tensor) -> Tensor:
    """At the time limit the hundreds of cells seen; nothing before, nor for the dead."""
    survived = (steps_left <= 0.0) & (terminated < 0.5)
    return torch.where(survived, 0.01 * cells_seen, 0.0)


task = Task(
    sentence="explore the world from a tunnel with lava in view, and keep off lava: it kills",
    fitness=fitness,
    fitness_doc=(
        "hundreds of cells that came into view in an episode at whose end the agent is alive, about"
        " 0.6 for staying and up to 10.24; 0 for an episode in which it dies"
    ),
    success_fitness=3.0,
    options={
        "size": 32,
        "start": "by_lava",
        "carrying": {"wood_pickaxe": 1},
        "monsters": False,
    },
    human_reward="rewards/keep_off_lava_human.py",
    sparse_reward="rewards/keep_off_lava_sparse.py",
    training=TrainingBudget(
        env_steps=300_000, num_envs=32, overrides={"entropy_coefficient": 0.01}
    ),
)
