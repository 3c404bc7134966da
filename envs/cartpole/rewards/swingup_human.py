"""The factors of the DeepMind Control Suite's cartpole swing-up (Tassa et al. 2018): upright,
centred, small control, slow pole.

There the cart cannot leave the track. Here it can, which ends the episode and so costs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def tolerance(value: Tensor, margin: float) -> Tensor:
    """1 at zero, falling off like a Gaussian to 0.1 at `margin`."""
    return torch.exp(math.log(0.1) * (value / margin).square())


def compute_reward(
    pole_upright: Tensor,
    cart_position: Tensor,
    pole_angular_velocity: Tensor,
    actions: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    upright = (pole_upright + 1.0) / 2.0
    centred = (1.0 + tolerance(cart_position, 2.0)) / 2.0
    small_control = (4.0 + (1.0 - actions[:, 0].square())) / 5.0
    slow_pole = (1.0 + tolerance(pole_angular_velocity, 5.0)) / 2.0
    left_the_track = -5.0 * terminated
    components = {
        "upright": upright,
        "centred": centred,
        "small_control": small_control,
        "slow_pole": slow_pole,
        "left_the_track": left_the_track,
    }
    return upright * centred * small_control * slow_pole + left_the_track, components
