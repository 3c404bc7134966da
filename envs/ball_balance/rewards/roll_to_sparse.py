"""The fitness as a reward: seconds of this step at rest at the goal."""

from __future__ import annotations

from torch import Tensor


def compute_reward(goal_distance: Tensor, ball_speed: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    at_rest = 0.02 * ((goal_distance < 0.1) & (ball_speed < 0.1)).float()
    return at_rest, {"at_rest": at_rest}
