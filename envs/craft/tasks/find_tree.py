"""Find a tree from where none is in view."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(succeeded: Tensor, steps_left: Tensor) -> Tensor:
    """1 at a tree, less 0.9 of the share of the steps that it took."""
    return succeeded * (0.1 + 0.9 * steps_left)


task = Task(
    sentence="find a tree, walk up to it and face it; none is in view at the start",
    fitness=fitness,
    fitness_doc=(
        "1 - 0.9·(steps taken / 300) for an episode in which the agent comes to face a tree, which"
        " is 0.1 to 1; 0 for an episode in which it does not"
    ),
    success_fitness=0.09,
    options={"size": 32, "start": "away_from_trees", "goal": "tree"},
    human_reward="rewards/find_tree_human.py",
    sparse_reward="rewards/find_tree_sparse.py",
    training=TrainingBudget(env_steps=40_000, num_envs=32, overrides={"entropy_coefficient": 0.01}),
)
