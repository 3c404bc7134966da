"""Hunt a cow on a meadow."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(succeeded: Tensor, steps_left: Tensor) -> Tensor:
    """1 for a cow that is eaten, less 0.9 of the share of the steps that it took."""
    return succeeded * (0.1 + 0.9 * steps_left)


task = Task(
    sentence="hunt a cow: walk up to one and hit it until it is eaten",
    fitness=fitness,
    fitness_doc=(
        "1 - 0.9·(steps taken / 300) for an episode in which the agent eats a cow, which is 0.1 to"
        " 1; 0 for an episode in which it does not"
    ),
    success_fitness=0.09,
    options={"size": 32, "goal": "cow", "monsters": False},
    human_reward="rewards/hunt_cow_human.py",
    sparse_reward="rewards/hunt_cow_sparse.py",
    training=TrainingBudget(
        env_steps=200_000, num_envs=32, overrides={"entropy_coefficient": 0.01}
    ),
)
