"""Turn the cube to any orientation, goal after goal: the task of IsaacGymEnvs (Makoviychuk et al.
2021) that Eureka uses (Ma et al. 2023), with the tolerance of OpenAI et al. (2020)."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(goal_reached: Tensor) -> Tensor:
    """Goals that are reached in this step."""
    return goal_reached


task = Task(
    sentence="turn the cube in the hand to the goal orientation, goal after goal, without a drop",
    fitness=fitness,
    fitness_doc=(
        "goals reached in an episode of 10 s, of which each is a random orientation of the cube; a"
        " goal is reached where rotation_distance is below 0.4 rad, and a cube that is dropped ends"
        " the episode"
    ),
    fitness_unit="goals",
    success_fitness=4.0,
    options={"goals": "any", "tolerance": 0.4, "hold": 1},
    training=TrainingBudget(
        env_steps=20_000_000,
        num_envs=64,
        overrides={"hidden_sizes": (128, 128), "initial_action_std": 0.5},
    ),
)
