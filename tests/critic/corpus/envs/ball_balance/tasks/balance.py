"""Keep the ball in the middle."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task


def fitness(ball_positions: Tensor) -> Tensor:
    """1 within 0.1 m of the middle."""
    return (ball_positions[:, :2].norm(dim=-1) < 0.1).float()


task = Task(
    sentence="keep the ball in the middle of the tray",
    fitness=fitness,
    fitness_doc="steps of an episode in which the ball is within 0.1 m of the middle",
)
