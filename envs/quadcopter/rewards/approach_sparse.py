"""The fitness as a reward: the negative distance, also for the time that an early end cuts off."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    goal_distance: Tensor, time_left: Tensor, terminated: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    components = {
        "distance": -0.002 * goal_distance,  # a step of 0.02 s in 10 s
        "lost_time": -0.4 * terminated * time_left,  # with 4 m, in 10 s
    }
    return sum(components.values()), components
