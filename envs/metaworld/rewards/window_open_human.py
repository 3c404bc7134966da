"""MetaWorld's reward of this task, its terms and weights (Yu et al. 2020, version 3):
reach the handle and slide."""

from __future__ import annotations

from torch import Tensor


def tolerance(value: Tensor, within: float, margin: Tensor | float) -> Tensor:
    """1 up to `within`, 0.1 a margin beyond it, in between and further as 1 / (1 + 9 d²)."""
    beyond = (value - within).clamp(min=0.0) / margin
    return 1.0 / (1.0 + 9.0 * beyond.square())


def both(first: Tensor, second: Tensor) -> Tensor:
    """Hamacher's product: near 1 only where both are."""
    product = first * second
    return product / (first + second - product).clamp(min=1e-6)


def compute_reward(
    reach_distance: Tensor,
    goal_distance: Tensor,
    start_object_position_w: Tensor,
    start_fingertips_position_w: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    start_reach = (start_object_position_w - start_fingertips_position_w).norm(dim=-1)
    in_place = tolerance(goal_distance, 0.05, 0.15)
    reach = tolerance(reach_distance, 0.02, (start_reach - 0.02).abs())
    total = 10.0 * both(reach, in_place)
    return total, {"reach_and_slide": total}
