"""The terms and weights of IsaacGymEnvs' FrankaCabinet task (Makoviychuk et al. 2021): the gripper
at the handle, turned towards it, one finger above and one below it, and the drawer open."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    handle_distance: Tensor,
    grip_forward_w: Tensor,
    grip_up_w: Tensor,
    left_finger_position_w: Tensor,
    right_finger_position_w: Tensor,
    handle_position_w: Tensor,
    fingers_around_handle: Tensor,
    drawer_opening: Tensor,
    actions: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    near = (1.0 / (1.0 + handle_distance.square())).square()
    near = near * (1.0 + (handle_distance <= 0.02))
    forward, up = grip_forward_w[:, 0], grip_up_w[:, 2]
    turned = 0.5 * (forward * forward.abs() + up * up.abs())
    around = 0.5 * fingers_around_handle
    above = (left_finger_position_w[:, 2] - handle_position_w[:, 2]).abs()
    below = (right_finger_position_w[:, 2] - handle_position_w[:, 2]).abs()
    closed = fingers_around_handle * (0.08 - above - below)
    stages = (
        0.5 * (drawer_opening > 0.01)
        + around * (drawer_opening > 0.2)
        + 2.0 * around * (drawer_opening > 0.39)
    )
    components = {
        "near": 2.0 * near,
        "turned": 0.5 * turned,
        "around": 0.25 * around,
        "closed": 5.0 * closed,
        "open": 7.5 * drawer_opening * (1.0 + around),
        "stages": stages,
        "action_cost": -0.01 * actions.square().sum(dim=-1),
    }
    # a finger's root more than 0.04 m beyond the handle: the step is worth -1 and nothing else
    farther = torch.maximum(left_finger_position_w[:, 0], right_finger_position_w[:, 0])
    bad = (farther > handle_position_w[:, 0] + 0.04).float()
    components = {name: (1.0 - bad) * value for name, value in components.items()}
    components["bad_style"] = -bad
    return sum(components.values()), components
