"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(ball_positions: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    near = (ball_positions[:, :2].norm(dim=-1) < 0.1).float()
    return near, {"near": near}
