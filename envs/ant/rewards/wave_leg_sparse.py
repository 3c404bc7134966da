"""The fitness as a reward: waves that were completed in this step."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    front_left_waves: Tensor, previous_front_left_waves: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    waves = front_left_waves - previous_front_left_waves
    return waves, {"waves": waves}
