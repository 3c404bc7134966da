"""The distance on two scales: from far away, and of a tenth of a metre; upright and
without spin where it is near."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    goal_distance: Tensor, upright: Tensor, angular_velocity_b: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    far = 1.0 / (1.0 + goal_distance.square())
    near = 1.0 / (1.0 + (goal_distance / 0.1).square())
    level = 0.3 * far * upright
    spin = -0.01 * angular_velocity_b.square().sum(dim=-1)
    components = {"far": far, "near": near, "level": level, "spin": spin}
    return far + near + level + spin, components
