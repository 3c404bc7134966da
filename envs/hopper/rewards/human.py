"""The terms and weights of Gymnasium's Hopper-v5 (Erez, Tassa and Todorov 2012; Towers et al.
2024)."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    torso_velocity_w: Tensor, actions: Tensor, terminated: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    components = {
        "forward": 1.0 * torso_velocity_w[:, 0],
        "healthy": 1.0 - terminated,
        "control_cost": -1e-3 * actions.square().sum(dim=-1),
    }
    return sum(components.values()), components
