"""Near the goal and slow there, as far as the fitness asks for both: a coarse pull from everywhere,
and a sharp one that falls to a half at the fitness's own bounds."""

from __future__ import annotations

from torch import Tensor


def compute_reward(goal_distance: Tensor, ball_speed: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    pull = 0.3 / (1.0 + (goal_distance / 0.3).square())
    near = 1.0 / (1.0 + (goal_distance / 0.1).square())
    settled = near / (1.0 + (ball_speed / 0.1).square())
    return pull + near + settled, {"pull": pull, "near": near, "settled": settled}
