"""MetaWorld's reward of this task, its terms and weights (Yu et al. 2020, version 3):
reach with closed fingers and press."""

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
    gripper_opening: Tensor,
    reach_distance: Tensor,
    goal_distance: Tensor,
    object_position_w: Tensor,
    start_fingertips_position_w: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    start_reach = (object_position_w - start_fingertips_position_w).norm(dim=-1)
    near = tolerance(reach_distance, 0.05, start_reach)
    pressed = tolerance(goal_distance, 0.005, 0.0935)
    components = {
        # as in the original, open fingers earn it
        "near": 2.0 * both(gripper_opening, near),
        "pressed": 8.0 * pressed * (reach_distance <= 0.05),
    }
    return sum(components.values()), components
