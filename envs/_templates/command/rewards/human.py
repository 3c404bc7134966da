"""CHANGE: the reward that you train with today, to compare with. Leave the file out where you have
none."""

import torch
from torch import Tensor


def compute_reward(
    upright: Tensor, sine: Tensor, angular_velocity: Tensor, actions: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Upright and still is better, and torque costs a little."""
    near = -torch.atan2(sine, upright).square()
    slow = -0.1 * angular_velocity.square()
    effort = -0.004 * actions[:, 0].square()
    return near + slow + effort, {"near": near, "slow": slow, "effort": effort}
