"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(pole_angle: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    upright = (pole_angle.abs() < 0.2).float()
    return upright, {"upright": upright}
