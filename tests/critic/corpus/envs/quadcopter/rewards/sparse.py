"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    root_positions: Tensor, target_root_positions: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    near = ((root_positions - target_root_positions).norm(dim=-1) < 0.3).float()
    return near, {"near": near}
