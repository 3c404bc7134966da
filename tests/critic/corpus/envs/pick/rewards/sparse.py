"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(cube_pos: Tensor, goal_pos: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    closeness = -(cube_pos - goal_pos).norm(dim=-1)
    return closeness, {"closeness": closeness}
