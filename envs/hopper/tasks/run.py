"""Run forward."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(torso_position_w: Tensor, previous_torso_position_w: Tensor) -> Tensor:
    """Metres forward in this step. An episode whose physics broke is put back to the start and so
    counts 0."""
    return torso_position_w[:, 0] - previous_torso_position_w[:, 0]


task = Task(
    sentence="make the hopper run forward as fast as possible",
    fitness=fitness,
    fitness_doc="metres travelled forward (+x) in an episode of 8 s; falling ends the episode",
    fitness_unit="m",
    success_fitness=12.0,
    training=TrainingBudget(
        env_steps=150_000, num_envs=32, gpu={"num_envs": 512, "env_steps": 3_000_000}
    ),
)
