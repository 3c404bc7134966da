# environment: pick
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_cube_reward(ee_pos: Tensor, cube_pos: Tensor, goal_pos: Tensor, gripper_width: Tensor, cube_half_size: float, success_tolerance: float) -> Tuple[Tensor, Dict[str, Tensor]]:
    # distance from the gripper to the cube
    d = torch.norm(cube_pos - ee_pos, dim=-1)
    dist_reward = 1 - torch.tanh(10.0 * d)

    # lifted: the cube is more than 4 cm over where it lies
    cube_height = cube_pos[:, 2] - cube_half_size
    cube_lifted = cube_height > 0.04
    lift_reward = cube_lifted

    # aligned with the goal
    d_goal = torch.norm(cube_pos - goal_pos, dim=-1)
    align_reward = (1 - torch.tanh(10.0 * d_goal)) * cube_lifted

    # reached
    goal_reached = (d_goal < success_tolerance) & (gripper_width > 0.0)

    rewards = torch.where(goal_reached, 16.0 * torch.ones_like(dist_reward), 0.1 * dist_reward + 1.5 * lift_reward + 2.0 * align_reward)
    return rewards, {"dist": 0.1 * dist_reward, "lift": lift_reward, "align": align_reward, "goal_reached": goal_reached}
