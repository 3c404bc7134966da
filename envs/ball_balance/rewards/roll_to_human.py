"""The terms of IsaacGymEnvs' BallBalance task (Makoviychuk et al. 2021), with the goal in place of
the tray's middle: near it and slow, multiplied."""

from __future__ import annotations

from torch import Tensor


def compute_reward(goal_distance: Tensor, ball_speed: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    near_and_slow = 1.0 / (1.0 + goal_distance) / (1.0 + ball_speed)
    return near_and_slow, {"near_and_slow": near_and_slow}
