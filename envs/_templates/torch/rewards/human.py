"""The reward that you would write yourself, to compare with. Leave the file out where you have
none."""

import torch
from torch import Tensor


def compute_reward(goal_distance: Tensor, actions: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Closer is better, and force costs a little."""
    closeness = torch.exp(-goal_distance / 0.5)
    effort = -0.01 * actions.square().sum(dim=-1)
    return closeness + effort, {"closeness": closeness, "effort": effort}
