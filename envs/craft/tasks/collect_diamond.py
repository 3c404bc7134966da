"""Collect a diamond in a mountain, with all that an iron pickaxe costs at the start."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(succeeded: Tensor, steps_left: Tensor) -> Tensor:
    """1 for a diamond, less 0.9 of the share of the steps that it took."""
    return succeeded * (0.1 + 0.9 * steps_left)


task = Task(
    sentence=(
        "collect a diamond: the agent starts in a mountain near one, with pickaxes of wood and"
        " stone, four wood, three stone, one coal and one iron; it has to place a table and a"
        " furnace, make an iron pickaxe beside both, and mine the diamond"
    ),
    fitness=fitness,
    fitness_doc=(
        "1 - 0.9·(steps taken / 300) for an episode in which the agent mines a diamond, which is"
        " 0.1 to 1; 0 for an episode in which it does not"
    ),
    success_fitness=0.09,
    options={
        "size": 32,
        "start": "by_diamond",
        "goal": "diamond",
        "carrying": {
            "wood_pickaxe": 1,
            "stone_pickaxe": 1,
            "wood": 4,
            "stone": 3,
            "coal": 1,
            "iron": 1,
        },
        "monsters": False,
    },
    human_reward="rewards/collect_diamond_human.py",
    sparse_reward="rewards/collect_diamond_sparse.py",
    training=TrainingBudget(
        env_steps=500_000, num_envs=32, overrides={"entropy_coefficient": 0.01}
    ),
)
