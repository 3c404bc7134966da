"""The fitness as a reward: seconds of this step with the drawer open by more than 0.39 m."""

from __future__ import annotations

from torch import Tensor


def compute_reward(drawer_opening: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    is_open = 0.02 * (drawer_opening > 0.39).float()
    return is_open, {"is_open": is_open}
