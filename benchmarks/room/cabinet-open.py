"""A hand at the handle wherever it takes hold, and the drawer: its way, and the fitness's end."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    handle_distance: Tensor,
    drawer_opening: Tensor,
    previous_drawer_opening: Tensor,
    actions: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    components = {
        "reach": -handle_distance,
        "near": 0.5 * torch.exp(-handle_distance / 0.05),
        "pull": 50.0 * (drawer_opening - previous_drawer_opening),
        "open": 5.0 * drawer_opening,
        "end": 3.0 * (drawer_opening > 0.39),
        "action_cost": -0.005 * actions.square().sum(dim=-1),
    }
    return sum(components.values()), components
