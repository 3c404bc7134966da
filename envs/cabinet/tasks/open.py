"""Open the drawer: Eureka's FrankaCabinet (Ma et al. 2023), where an episode succeeds once the
drawer is open by more than 0.39 m; here the time counts that it is."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget

CONTROL_DT = 0.02
OPEN = 0.39


def fitness(drawer_opening: Tensor) -> Tensor:
    """Seconds of this step with the drawer open by more than 0.39 m."""
    return CONTROL_DT * (drawer_opening > OPEN).float()


task = Task(
    sentence="open the cabinet's drawer all the way, soon, and keep it open",
    fitness=fitness,
    fitness_doc="seconds of an episode of 6 s in which the drawer is open by more than 0.39 m",
    fitness_unit="s",
    success_fitness=3.0,
    training=TrainingBudget(env_steps=1_200_000, num_envs=64),
)
