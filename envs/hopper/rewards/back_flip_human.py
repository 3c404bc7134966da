"""Turning backward in flight, the more the farther the flip has come, and much for one that is
landed. A turn counts for as much as the robot is off the ground, so that falling over pays nothing,
and upward speed pays, since a turn needs time in the air."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    pitch_turned: Tensor,
    previous_pitch_turned: Tensor,
    flip_turn: Tensor,
    torso_height: Tensor,
    torso_velocity_w: Tensor,
    foot_position_w: Tensor,
    foot_in_contact: Tensor,
    body_clearance: Tensor,
    back_flips: Tensor,
    previous_back_flips: Tensor,
    actions: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    turned = previous_pitch_turned - pitch_turned
    come = torch.clamp(-flip_turn, 0.0, 7.0)
    in_flight = (1.0 - foot_in_contact) * (body_clearance > 0.05)
    foot_off = torch.clamp(foot_position_w[:, 1] / 0.3, 0.0, 1.0)
    torso_off = torch.clamp((torso_height - 0.5) / 0.5, 0.0, 1.0)
    components = {
        "spin": turned * (1.0 + come) * in_flight * foot_off * torso_off,
        "jump": 0.2 * torch.clamp(torso_velocity_w[:, 1], 0.0, 3.0),
        "landed": 20.0 * (back_flips - previous_back_flips),
        "action_cost": -0.001 * actions.square().sum(dim=-1),
    }
    return sum(components.values()), components
