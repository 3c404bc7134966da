"""The terms and weights of IsaacGymEnvs' Cartpole task (Makoviychuk et al. 2021)."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    pole_angle: Tensor, pole_angular_velocity: Tensor, cart_velocity: Tensor, terminated: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    alive = 1.0 - terminated
    components = {
        "upright": alive * (1.0 - pole_angle.square()),
        "slow_cart": -0.01 * alive * cart_velocity.abs(),
        "slow_pole": -0.005 * alive * pole_angular_velocity.abs(),
        "failure": -2.0 * terminated,
    }
    return sum(components.values()), components
