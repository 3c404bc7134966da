# environment: pick
import numpy as np
import torch
import torch.nn.functional as F

TEMPERATURES = {"reach": 0.1, "lift": 0.05, "place": 0.15}

def compute_reward(ee_pos, cube_pos, goal_pos, is_grasped):
    distances = {
        "reach": torch.norm(ee_pos - cube_pos, dim=-1),
        "lift": F.relu(goal_pos[:, 2] - cube_pos[:, 2]),
        "place": torch.norm(cube_pos - goal_pos, dim=-1),
    }
    reward_dict = {}
    for key, distance in distances.items():
        score = torch.exp(-distance / TEMPERATURES[key])
        # the later stages need a grasp
        if key != "reach":
            score = score * is_grasped
        reward_dict[f"r_{key}"] = score
    reward_dict["r_grasp"] = is_grasped * 0.5
    reward = sum(reward_dict.values())
    return reward, reward_dict
