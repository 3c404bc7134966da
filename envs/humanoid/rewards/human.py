"""The terms and weights of IsaacGymEnvs' Humanoid task (Makoviychuk et al. 2021), with the velocity
forward for the change of potential. A fall is worth -1, whatever else the step was worth."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    torso_velocity_w: Tensor,
    torso_upright: Tensor,
    heading_w: Tensor,
    joint_velocities: Tensor,
    joint_limit_nearness: Tensor,
    motor_strengths: Tensor,
    actions: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    alive = 1.0 - terminated
    electricity = ((actions * 0.1 * joint_velocities).abs() * motor_strengths).sum(dim=-1)
    beyond = torch.clamp((joint_limit_nearness - 0.98) / 0.02, min=0.0)
    components = {
        "progress": alive * torso_velocity_w[:, 0],
        "heading": alive * 0.5 * torch.clamp(heading_w[:, 0] / 0.8, max=1.0),
        "upright": alive * 0.1 * (torso_upright > 0.93),
        "alive": alive * 2.0,
        "action_cost": alive * -0.01 * actions.square().sum(dim=-1),
        "electricity_cost": alive * -0.05 * electricity,
        "joint_limit_cost": alive * -0.25 * (beyond * motor_strengths).sum(dim=-1),
        "death": -1.0 * terminated,
    }
    return sum(components.values()), components
