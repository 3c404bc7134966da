"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(speed: Tensor, min_pos: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    metres = 0.1 * speed * (min_pos < 1.0).float()
    return metres, {"metres": metres}
