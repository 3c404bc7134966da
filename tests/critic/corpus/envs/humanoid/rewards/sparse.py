"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(velocity: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    progress = velocity[:, 0] / 60.0
    return progress, {"progress": progress}
