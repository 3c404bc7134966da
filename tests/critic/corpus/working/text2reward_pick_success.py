# environment: pick
import numpy as np
import torch

def compute_reward(ee_pos, cube_pos, goal_pos, is_grasped, cube_half_size):
    reward = torch.zeros(ee_pos.shape[0], device=ee_pos.device)

    # reach
    tcp_to_cube = torch.linalg.norm(cube_pos - ee_pos, dim=1)
    reach = 1 - torch.tanh(5 * tcp_to_cube)
    reward = reward + reach

    # grasp
    grasp = torch.where(is_grasped > 0.5, 1.0, 0.0)
    reward = reward + grasp

    # lift and place
    lifted = (cube_pos[:, 2] > cube_half_size + 0.005).float()
    cube_to_goal = torch.linalg.norm(goal_pos - cube_pos, dim=1)
    place = lifted * (1 - torch.tanh(5 * cube_to_goal))
    reward = reward + place

    # an episode that succeeds gets the largest reward
    success = cube_to_goal < 0.025
    reward[success] = 5.0

    return reward, {"reach": reach, "grasp": grasp, "place": place, "success": success}
