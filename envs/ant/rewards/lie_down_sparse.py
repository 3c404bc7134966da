"""The fitness as a reward: seconds in this step that the robot lies flat, less the faster it
moves."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    torso_height: Tensor, torso_upright: Tensor, torso_velocity_w: Tensor, joint_velocities: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    lies = (torso_height < 0.4) & (torso_upright > 0.95)
    speed = torso_velocity_w.norm(dim=-1)
    joint_speed = joint_velocities.abs().mean(dim=-1)
    lying = 0.016 * lies * torch.exp(-speed / 0.2 - joint_speed / 1.0)
    return lying, {"lying": lying}
