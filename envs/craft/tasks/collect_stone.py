"""Collect a stone, from nothing: wood, a table, a pickaxe."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(succeeded: Tensor, steps_left: Tensor) -> Tensor:
    """1 for a stone, less 0.9 of the share of the steps that it took."""
    return succeeded * (0.1 + 0.9 * steps_left)


task = Task(
    sentence=(
        "collect a stone: fell trees for wood, place a table, make a wood pickaxe beside it, and"
        " mine a stone"
    ),
    fitness=fitness,
    fitness_doc=(
        "1 - 0.9·(steps taken / 300) for an episode in which the agent mines a stone, which is 0.1"
        " to 1; 0 for an episode in which it does not"
    ),
    success_fitness=0.09,
    options={"size": 32, "start": "by_trees_and_rock", "goal": "stone", "monsters": False},
    human_reward="rewards/collect_stone_human.py",
    sparse_reward="rewards/collect_stone_sparse.py",
    training=TrainingBudget(
        env_steps=500_000, num_envs=32, overrides={"entropy_coefficient": 0.01}
    ),
)
