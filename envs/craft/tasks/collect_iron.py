"""Collect iron in a mountain, with a wood pickaxe and some wood at the start."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(succeeded: Tensor, steps_left: Tensor) -> Tensor:
    """1 for iron, less 0.9 of the share of the steps that it took."""
    return succeeded * (0.1 + 0.9 * steps_left)


task = Task(
    sentence=(
        "collect iron: the agent starts in a mountain with a wood pickaxe and four wood; it has to"
        " mine a stone, place a table, make a stone pickaxe beside it, and mine iron"
    ),
    fitness=fitness,
    fitness_doc=(
        "1 - 0.9·(steps taken / 300) for an episode in which the agent mines iron, which is 0.1 to"
        " 1; 0 for an episode in which it does not"
    ),
    success_fitness=0.09,
    options={
        "size": 32,
        "start": "by_iron",
        "goal": "iron",
        "carrying": {"wood_pickaxe": 1, "wood": 4},
        "monsters": False,
    },
    human_reward="rewards/collect_iron_human.py",
    sparse_reward="rewards/collect_iron_sparse.py",
    training=TrainingBudget(
        env_steps=400_000, num_envs=32, overrides={"entropy_coefficient": 0.01}
    ),
)
