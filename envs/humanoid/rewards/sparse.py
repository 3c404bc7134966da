"""The fitness as a reward: metres forward in this step."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    torso_position_w: Tensor, previous_torso_position_w: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    distance = torso_position_w[:, 0] - previous_torso_position_w[:, 0]
    return distance, {"distance": distance}
