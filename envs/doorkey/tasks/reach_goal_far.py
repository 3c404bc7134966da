"""Get out of a large room with a locked door and to the goal."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(succeeded: Tensor, steps_left: Tensor) -> Tensor:
    """MiniGrid's reward: 1 on the goal, less 0.9 of the share of the steps that it took."""
    return succeeded * (0.1 + 0.9 * steps_left)


task = Task(
    sentence="pick up the key, open the door with it and go to the goal",
    fitness=fitness,
    fitness_doc=(
        "1 - 0.9·(steps taken / 360) for an episode that reaches the goal, which is 0.1 to 1; 0 for"
        " an episode that does not"
    ),
    success_fitness=0.09,
    options={"size": 16},
    training=TrainingBudget(
        env_steps=300_000, num_envs=32, overrides={"entropy_coefficient": 0.01}
    ),
)
