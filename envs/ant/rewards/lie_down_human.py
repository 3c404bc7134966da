"""A low and level torso, and stillness that counts the more the lower the torso is."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    torso_height: Tensor,
    torso_upright: Tensor,
    torso_velocity_w: Tensor,
    joint_velocities: Tensor,
    actions: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    # 0.36 m: a torso whose legs are stretched out flat
    low = torch.exp(-10.0 * (torso_height - 0.36).abs())
    restlessness = torso_velocity_w.norm(dim=-1) + 0.2 * joint_velocities.abs().mean(dim=-1)
    components = {
        "low": low,
        "level": 0.3 * torso_upright,
        "still": low * torch.exp(-3.0 * restlessness),
        "action_cost": -0.02 * actions.square().sum(dim=-1),
    }
    return sum(components.values()), components
