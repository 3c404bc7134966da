"""MetaWorld's reward of this task, its terms and weights (Yu et al. 2020, version 3):
fingers and handle to the goal."""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_tolerance(value: Tensor, within: float, margin: Tensor | float) -> Tensor:
    """1 up to `within`, 0.1 a margin beyond it, in between and further as 0.1 to the d²."""
    beyond = (value - within).clamp(min=0.0) / margin
    return torch.exp(-2.302585 * beyond.square())


def compute_reward(
    fingertips_position_w: Tensor,
    object_position_w: Tensor,
    goal_position_w: Tensor,
    goal_distance: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    hand_start = object_position_w.new_tensor([-0.5, 0.6, 0.2])
    margin = (hand_start - object_position_w).norm(dim=-1) + 0.1
    reach = (fingertips_position_w - goal_position_w).norm(dim=-1)
    going_on = (goal_distance >= 0.05).float()
    components = {
        "hand_in_place": going_on * 3.0 * gaussian_tolerance(reach, 0.0125, margin),
        "in_place": going_on * 6.0 * gaussian_tolerance(goal_distance, 0.05, 0.08**0.5),
        "done": 10.0 * (1.0 - going_on),
    }
    return sum(components.values()), components
