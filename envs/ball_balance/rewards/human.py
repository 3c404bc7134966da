"""The terms of IsaacGymEnvs' BallBalance task (Makoviychuk et al. 2021): near the place where the
ball rests in the middle, and slow, multiplied."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(ball_position_w: Tensor, ball_speed: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    from_rest = ball_position_w[:, 2] - 0.71  # height of the ball on the level tray
    distance = torch.sqrt(ball_position_w[:, 0:2].square().sum(dim=-1) + from_rest.square())
    near_and_slow = 1.0 / (1.0 + distance) / (1.0 + ball_speed)
    return near_and_slow, {"near_and_slow": near_and_slow}
