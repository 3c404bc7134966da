"""Turning forward in flight, the more the farther the flip has come, and much for one that is
landed. A turn counts for as much as the robot is off the ground, so that falling over pays
little, and upward speed pays, since a turn needs time in the air. It takes off leaning."""

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
    front_flips: Tensor,
    previous_front_flips: Tensor,
    actions: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    turned = pitch_turned - previous_pitch_turned
    come = torch.clamp(flip_turn, 0.0, 7.0)
    in_flight = (1.0 - foot_in_contact) * (body_clearance > 0.05)
    foot_off = torch.clamp(foot_position_w[:, 1] / 0.3, 0.0, 1.0)
    torso_off = torch.clamp((torso_height - 0.5) / 0.5, 0.0, 1.0)
    components = {
        "spin": 3.0 * turned * (1.0 + come) * in_flight * foot_off * torso_off,
        "lean": 0.3 * turned * foot_in_contact,
        "jump": 0.1 * torch.clamp(torso_velocity_w[:, 1], 0.0, 3.0),
        "landed": 20.0 * (front_flips - previous_front_flips),
        "action_cost": -0.001 * actions.square().sum(dim=-1),
        "failure": -1.0 * terminated,
    }
    return sum(components.values()), components
