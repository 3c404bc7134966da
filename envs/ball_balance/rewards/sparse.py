"""The fitness as a reward: seconds of this step at rest in the middle."""

from __future__ import annotations

from torch import Tensor


def compute_reward(middle_distance: Tensor, ball_speed: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    at_rest = 0.02 * ((middle_distance < 0.1) & (ball_speed < 0.1)).float()
    return at_rest, {"at_rest": at_rest}
