"""The distance on two scales, without a charge for turning."""

from __future__ import annotations

from torch import Tensor


def compute_reward(goal_distance: Tensor, upright: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    far = 1.0 / (1.0 + goal_distance)
    near = (goal_distance < 0.2).float()
    level = 0.1 * far * upright
    components = {"far": far, "near": near, "level": level}
    return far + near + level, components
