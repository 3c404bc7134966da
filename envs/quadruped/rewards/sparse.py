"""The fitness as a reward: a step's share (0.02 s of 10 s) of the negative mean error,
and the time lost by a fall."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    commanded_velocity_b: Tensor,
    commanded_yaw_rate: Tensor,
    torso_velocity_b: Tensor,
    torso_angular_velocity_b: Tensor,
    time_left: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    ahead_and_left = (torso_velocity_b[:, 0:2] - commanded_velocity_b).square().sum(dim=-1)
    turn = (torso_angular_velocity_b[:, 2] - commanded_yaw_rate).square()
    standing = commanded_velocity_b.square().sum(dim=-1) + commanded_yaw_rate.square()
    components = {
        "velocity_error": -0.002 * ahead_and_left,
        "turn_error": -0.002 * turn,
        "fall": -terminated * time_left * (standing + 1.0) / 10.0,
    }
    return sum(components.values()), components
