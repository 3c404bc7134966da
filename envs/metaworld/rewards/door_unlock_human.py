"""MetaWorld's reward of this task, its terms and weights (Yu et al. 2020, version 3):
bring the hand's shoulder to the lock and push."""

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
    scale = hand_position_w.new_tensor([0.25, 1.0, 0.5])
    shoulder = hand_position_w.new_tensor([0.0, 0.055, 0.07])
    axis = goal_position_w - hand_position_w.new_tensor([0.1, -0.04, 0.0])
    ready = (scale * (hand_position_w + shoulder - object_position_w)).norm(dim=-1)
    start_ready = (scale * (start_fingertips_position_w + shoulder - axis)).norm(dim=-1)
    components = {
        "ready_to_push": 2.0 * tolerance(ready, 0.02, start_ready),
        "pushed": 8.0 * tolerance(goal_distance, 0.005, 0.1),
    }
    return sum(components.values()), components
