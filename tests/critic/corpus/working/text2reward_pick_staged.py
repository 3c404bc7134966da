# environment: pick
import torch
from typing import Tuple, Dict

def compute_dense_reward(ee_pos, cube_pos, goal_pos, is_grasped, qvel, actions):
    # Stage 1: reach the cube
    reaching_dist = torch.norm(ee_pos - cube_pos, dim=-1)
    reaching_reward = 1 - torch.tanh(5.0 * reaching_dist)

    # Stage 2: grasp it
    grasping_reward = is_grasped

    # Stage 3: bring it to the goal, which counts only while it is held
    goal_dist = torch.norm(cube_pos - goal_pos, dim=-1)
    placing_reward = (1 - torch.tanh(5.0 * goal_dist)) * is_grasped

    # Stage 4: hold still at the goal
    placed = (goal_dist < 0.025).float()
    static_reward = (1 - torch.tanh(0.5 * torch.norm(qvel[:, :7], dim=-1))) * placed

    # Regularization of the action
    action_penalty = -0.01 * (actions ** 2).sum(dim=-1)

    reward = reaching_reward + grasping_reward + placing_reward + static_reward + action_penalty
    return reward, {
        "reaching": reaching_reward,
        "grasping": grasping_reward,
        "placing": placing_reward,
        "static": static_reward,
        "action": action_penalty,
    }
