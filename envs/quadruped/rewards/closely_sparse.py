"""The fitness of follow_closely as a reward: seconds in this step that both errors are small."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    commanded_velocity_b: Tensor,
    commanded_yaw_rate: Tensor,
    torso_velocity_b: Tensor,
    torso_angular_velocity_b: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    velocity_error = (torso_velocity_b[:, 0:2] - commanded_velocity_b).norm(dim=-1)
    turn_error = (torso_angular_velocity_b[:, 2] - commanded_yaw_rate).abs()
    follows = (velocity_error < 0.15) & (turn_error < 0.25)
    following = 0.02 * (1.0 - terminated) * follows.float()
    return following, {"following": following}
