"""MetaWorld's reward of this task (cage and grip the block, bring it to the hole; Yu et al. 2020,
version 3 of the package): its terms and weights."""

from __future__ import annotations

import torch
from torch import Tensor


def tolerance(value: Tensor, low: float, high: float, margin: Tensor | float) -> Tensor:
    """1 from `low` to `high`, 0.1 a margin beyond them, then 1 / (1 + 9 d²)."""
    beyond = torch.maximum(low - value, value - high).clamp(min=0.0)
    return 1.0 / (1.0 + 9.0 * (beyond / (margin + 1e-9)).square())


def both(first: Tensor, second: Tensor) -> Tensor:
    """Hamacher's product: near 1 only where both are."""
    product = first * second
    return product / (first + second - product).clamp(min=1e-6)


def compute_reward(
    fingertips_position_w: Tensor,
    left_pad_position_w: Tensor,
    right_pad_position_w: Tensor,
    object_position_w: Tensor,
    goal_position_w: Tensor,
    goal_distance: Tensor,
    start_fingertips_position_w: Tensor,
    start_object_position_w: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    left = left_pad_position_w[:, 1] - object_position_w[:, 1]
    right = object_position_w[:, 1] - right_pad_position_w[:, 1]
    # the original takes the pads of the moment for those of the start
    left_margin = (left.abs() - 0.05).abs()
    right_margin = (right.abs() - 0.05).abs()
    y_caging = both(
        tolerance(right, 0.02, 0.05, right_margin), tolerance(left, 0.02, 0.05, left_margin)
    )
    y_gripping = both(
        tolerance(right, 0.02, 0.025, right_margin),
        tolerance(left, 0.02, 0.025, left_margin),
    )
    level = object_position_w.new_tensor([1.0, 0.0, 1.0])
    xz_distance = (level * (fingertips_position_w - object_position_w)).norm(dim=-1)
    start = (level * (start_fingertips_position_w - start_object_position_w)).norm(dim=-1)
    caging = both(y_caging, tolerance(xz_distance, 0.0, 0.01, start - 0.01))
    grasped = 0.5 * (caging + torch.where(caging > 0.95, y_gripping, 0.0))

    # at the block's height, so that its depth in the hole counts nothing
    push = (start_object_position_w - goal_position_w)[:, 0:2].square().sum(dim=-1)
    fallen = (start_object_position_w - object_position_w)[:, 2].square()
    in_place = tolerance(goal_distance, 0.0, 0.05, (push + fallen).sqrt())
    going_on = (goal_distance >= 0.05).float()
    components = {
        "grasped": going_on * 2.0 * grasped,
        "grasped_and_in_place": going_on * 6.0 * both(grasped, in_place),
        "done": 10.0 * (1.0 - going_on),
    }
    return sum(components.values()), components
