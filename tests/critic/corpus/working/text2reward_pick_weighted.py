# environment: pick
import torch
from typing import Dict, Tuple

def compute_reward(ee_pos: torch.Tensor, cube_pos: torch.Tensor, goal_pos: torch.Tensor, gripper_width: torch.Tensor, actions: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Weights of the reward's components
    weight_reach = 0.3
    weight_lift = 0.2
    weight_goal = 0.5

    # Distance of gripper and cube
    reach = -torch.norm(ee_pos - cube_pos, dim=-1)

    # Open the gripper far from the cube and close it near the cube
    near = (-reach < 0.03)
    grip = torch.where(near, 1.0 - gripper_width / 0.08, gripper_width / 0.08)

    # Height of the cube, up to the goal's height
    lift = torch.minimum(cube_pos[:, 2], goal_pos[:, 2]) / torch.clamp(goal_pos[:, 2], min=0.02)

    # Distance of cube and goal
    goal = -torch.norm(goal_pos - cube_pos, dim=-1)

    reward = weight_reach * reach + 0.1 * grip + weight_lift * lift + weight_goal * goal
    reward -= 0.01 * (actions ** 2).sum(dim=-1)
    return reward, {"reach": weight_reach * reach, "grip": 0.1 * grip, "lift": weight_lift * lift, "goal": weight_goal * goal}
