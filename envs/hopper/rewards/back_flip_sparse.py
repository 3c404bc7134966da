"""The fitness as a reward: flips backward that were landed in this step."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    back_flips: Tensor, previous_back_flips: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    landed = back_flips - previous_back_flips
    return landed, {"landed": landed}
