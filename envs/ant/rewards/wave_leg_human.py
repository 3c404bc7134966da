"""Movement of the front left foot that a wave needs next, on three feet that stand, and more for
each wave."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    foot_positions_w: Tensor,
    previous_foot_positions_w: Tensor,
    front_left_raised: Tensor,
    front_left_waves: Tensor,
    previous_front_left_waves: Tensor,
    torso_upright: Tensor,
    torso_velocity_w: Tensor,
    actions: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    height = foot_positions_w[:, 0, 2]
    rise = torch.clamp(height - previous_foot_positions_w[:, 0, 2], -0.05, 0.05)
    others = torch.clamp(foot_positions_w[:, 1:, 2] - 0.1, 0.0, 0.3).sum(dim=-1)
    components = {
        "movement": 10.0 * rise * (1.0 - 2.0 * front_left_raised),
        "waves": 2.0 * (front_left_waves - previous_front_left_waves),
        "others_stand": -1.0 * others,
        "level": 0.2 * torso_upright,
        "place": -0.1 * torso_velocity_w[:, 0:2].norm(dim=-1),
        "action_cost": -0.005 * actions.square().sum(dim=-1),
        "failure": -2.0 * terminated,
    }
    return sum(components.values()), components
