"""The fitness as a reward: flips forward that were landed in this step."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    front_flips: Tensor, previous_front_flips: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    landed = front_flips - previous_front_flips
    return landed, {"landed": landed}
