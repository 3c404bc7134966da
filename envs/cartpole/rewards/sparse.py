"""The fitness as a reward: seconds of this step in which the pole is within 0.2 rad of upright."""

from __future__ import annotations

from torch import Tensor


def compute_reward(pole_upright: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    upright_time = 0.02 * (pole_upright > 0.98).float()
    return upright_time, {"upright_time": upright_time}
