"""The fitness as a reward: seconds of this step within 0.2 m of the goal."""

from __future__ import annotations

from torch import Tensor


def compute_reward(goal_distance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    time_near = 0.02 * (goal_distance < 0.2).float()
    return time_near, {"time_near": time_near}
