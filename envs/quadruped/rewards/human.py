"""The terms and weights of IsaacGymEnvs' Anymal task (Makoviychuk et al. 2021), per step of 0.02 s
with a total that is never negative, as there."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    commanded_velocity_b: Tensor,
    commanded_yaw_rate: Tensor,
    torso_velocity_b: Tensor,
    torso_angular_velocity_b: Tensor,
    joint_torques: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    velocity_error = (commanded_velocity_b - torso_velocity_b[:, 0:2]).square().sum(dim=-1)
    turn_error = (commanded_yaw_rate - torso_angular_velocity_b[:, 2]).square()
    velocity = 0.02 * torch.exp(-velocity_error / 0.25)
    turn = 0.01 * torch.exp(-turn_error / 0.25)
    torque = -5e-7 * joint_torques.square().sum(dim=-1)
    components = {
        "velocity": velocity,
        "turn": turn,
        "torque_cost": torch.maximum(torque, -velocity - turn),
    }
    return sum(components.values()), components
