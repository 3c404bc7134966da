"""The fitness as a reward: goals reached in this step."""

from __future__ import annotations

from torch import Tensor


def compute_reward(goal_reached: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return goal_reached, {"goal_reached": goal_reached}
