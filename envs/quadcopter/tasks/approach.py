"""Fly near: the Quadcopter of Eureka (Ma et al. 2023) with its metric, the negative distance."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

EPISODE_S = 10.0
CONTROL_DT = 0.02
FARTHEST = 4.0


def fitness(goal_distance: Tensor, time_left: Tensor, terminated: Tensor) -> Tensor:
    """This step's share of the negative mean distance of an episode. An early end counts the time
    that is left with the largest distance: else a crash near the goal would be worth a good deal.
    """
    return -(CONTROL_DT * goal_distance + FARTHEST * terminated * time_left) / EPISODE_S


task = Task(
    sentence="approach the goal position with the quadcopter and keep as near to it as possible",
    fitness=fitness,
    fitness_doc=(
        "negative mean distance to the goal in m over an episode of 10 s; 0 is perfect, to hover at"
        " the start gets -1.1 on average. The time that hitting the ground or flying away cuts off"
        " counts with a distance of 4 m"
    ),
    fitness_unit="m",
    success_fitness=-0.3,
    options={"goal_spread": 1.0},
    human_reward="rewards/human.py",
    sparse_reward="rewards/approach_sparse.py",
    training=TrainingBudget(env_steps=200_000, num_envs=16),
)
