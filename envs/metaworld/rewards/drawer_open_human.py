"""MetaWorld's reward of this task, its terms and weights (Yu et al. 2020, version 3):
reach the handle and pull."""

from __future__ import annotations

from torch import Tensor


def tolerance(value: Tensor, within: float, margin: Tensor | float) -> Tensor:
    """1 up to `within`, 0.1 a margin beyond it, in between and further as 1 / (1 + 9 d²)."""
    beyond = (value - within).clamp(min=0.0) / margin
    return 1.0 / (1.0 + 9.0 * beyond.square())


def compute_reward(
    hand_position_w: Tensor,
    object_position_w: Tensor,
    goal_position_w: Tensor,
    goal_distance: Tensor,
    start_fingertips_position_w: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    # along x and y the hand has to be nearer than in height, so that it drops onto the handle
    scale = hand_position_w.new_tensor([3.0, 3.0, 1.0])
    closed = goal_position_w + hand_position_w.new_tensor([0.0, 0.2, 0.0])
    reach = (scale * (object_position_w - hand_position_w)).norm(dim=-1)
    start_reach = (scale * (closed - start_fingertips_position_w)).norm(dim=-1)
    components = {
        "caging": 5.0 * tolerance(reach, 0.01, start_reach),
        "opening": 5.0 * tolerance(goal_distance, 0.02, 0.2),
    }
    return sum(components.values()), components
