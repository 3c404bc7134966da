"""The terms and weights of IsaacGymEnvs' hand tasks (Makoviychuk et al. 2021), with the bonus of
250 for a goal that is reached."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    cube_place_distance: Tensor, rotation_distance: Tensor, goal_reached: Tensor, actions: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    components = {
        "place": -10.0 * cube_place_distance,
        "rotation": 1.0 / (rotation_distance + 0.1),
        "action_cost": -0.0002 * actions.square().sum(dim=-1),
        "goal_bonus": 250.0 * goal_reached,
    }
    return sum(components.values()), components
