"""The terms of IsaacGymEnvs' Quadcopter task (Makoviychuk et al. 2021): near the goal, and there
level and without spin."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    goal_distance: Tensor, upright: Tensor, angular_velocity_b: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    near = 1.0 / (1.0 + goal_distance.square())
    level = near / (1.0 + (1.0 - upright).square())
    no_spin = near / (1.0 + angular_velocity_b[:, 2].square())
    return near + level + no_spin, {"near": near, "level": level, "no_spin": no_spin}
