"""Waves, and the way of the front left foot that the next one needs."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    foot_positions_w: Tensor,
    previous_foot_positions_w: Tensor,
    front_left_raised: Tensor,
    front_left_waves: Tensor,
    previous_front_left_waves: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    rise = foot_positions_w[:, 0, 2] - previous_foot_positions_w[:, 0, 2]
    components = {
        "movement": torch.clamp(rise, -0.05, 0.05) * (1.0 - 2.0 * front_left_raised),
        "waves": front_left_waves - previous_front_left_waves,
        "failure": -2.0 * terminated,
    }
    return sum(components.values()), components
