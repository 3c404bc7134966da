# environment: hand
# Insight from the tree: sibling nodes with a pure orientation reward get stuck, since far from the
# goal the exponential is flat. The change of the angle from step to step is informative everywhere.
import torch
import numpy as np
from typing import Tuple, Dict

def rotation_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Angle in rad between two orientations."""
    inner = torch.sum(a * b, dim=-1).abs()
    return 2.0 * torch.acos(torch.clamp(inner, max=1.0 - 1e-6))

def compute_reward(object_rot, previous_object_rot, goal_rot, object_pos, goal_pos):
    angle = rotation_distance(object_rot, goal_rot)
    previous_angle = rotation_distance(previous_object_rot, goal_rot)

    progress = 10.0 * (previous_angle - angle)
    closeness = 1.0 - angle / np.pi
    fallen = (torch.norm(object_pos - goal_pos, dim=-1) > 0.1).float()

    reward = progress + closeness - 5.0 * fallen
    return reward, {"progress": progress, "closeness": closeness, "fallen": -5.0 * fallen}
