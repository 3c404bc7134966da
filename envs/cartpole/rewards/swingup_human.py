"""The factors of the DeepMind Control Suite's cartpole swing-up (Tassa et al. 2018): upright, centred, small control, slow pole."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def tolerance(value: Tensor, margin: float) -> Tensor:
    """1 at zero, falling off like a Gaussian to 0.1 at `margin`."""
    return torch.exp(math.log(0.1) * (value / margin).square())


def compute_reward(
    pole_upright: Tensor, cart_position: Tensor, pole_angular_velocity: Tensor, actions: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    upright = (pole_upright + 1.0) / 2.0
    centred = (1.0 + tolerance(cart_position, 2.0)) / 2.0
    small_control = (4.0 + (1.0 - actions[:, 0].square())) / 5.0
    slow_pole = (1.0 + tolerance(pole_angular_velocity, 5.0)) / 2.0
    total = upright * centred * small_control * slow_pole
    return total, {"upright": upright, "centred": centred, "small_control": small_control, "slow_pole": slow_pole}
