"""Turn the cube about the vertical, an eighth at a time."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(goal_reached: Tensor) -> Tensor:
    """Goals that are reached in this step."""
    return goal_reached


task = Task(
    sentence="turn the cube in the hand about the vertical as often as possible, without a drop",
    fitness=fitness,
    fitness_doc=(
        "goals reached in an episode of 10 s, each a further eighth of a turn of the cube about the"
        " vertical, anticlockwise as seen from above; a goal is reached after 0.25 s in a row with"
        " rotation_distance below 0.25 rad, and a cube that is dropped ends the episode"
    ),
    fitness_unit="goals",
    success_fitness=8.0,
    options={"goals": "turn"},
    training=TrainingBudget(
        env_steps=1_000_000,
        num_envs=64,
        overrides={"hidden_sizes": (128, 128)},
    ),
)
