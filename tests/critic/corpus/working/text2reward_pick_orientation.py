# environment: pick
import torch
from typing import Tuple, Dict

def compute_reward(ee_pos: torch.Tensor, ee_vel: torch.Tensor, cube_pos: torch.Tensor, cube_rot: torch.Tensor, cube_vel: torch.Tensor, goal_pos: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # The gripper should be over the cube before it goes down
    horizontal = torch.norm(ee_pos[:, :2] - cube_pos[:, :2], dim=-1)
    vertical = torch.abs(ee_pos[:, 2] - cube_pos[:, 2])
    over = torch.exp(-20.0 * horizontal)
    down = over * torch.exp(-10.0 * vertical)

    # The cube stays flat: the z axis of its rotation matrix
    x, y, z, w = cube_rot.unbind(dim=-1)
    flat = 1 - 2 * (x ** 2 + y ** 2)

    # Cube and gripper move together
    together = torch.exp(-5.0 * torch.norm(cube_vel - ee_vel, dim=-1))

    # Towards the goal
    to_goal = torch.norm(goal_pos - cube_pos, dim=-1)
    goal_term = 2.0 / (1.0 + 10.0 * to_goal)

    reward = over + down + 0.2 * flat + 0.3 * together + goal_term
    return reward, {'over': over, 'down': down, 'flat': 0.2 * flat, 'together': 0.3 * together, 'goal': goal_term}
