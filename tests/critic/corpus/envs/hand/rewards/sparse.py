"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(object_rot: Tensor, goal_rot: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    aligned = ((object_rot * goal_rot).sum(dim=-1).abs() > 0.98).float()
    return aligned, {"aligned": aligned}
