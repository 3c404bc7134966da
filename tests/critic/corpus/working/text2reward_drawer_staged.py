# environment: cabinet
import torch
from typing import Tuple, Dict

def compute_dense_reward(franka_grasp_pos, drawer_grasp_pos, cabinet_dof_pos, cabinet_dof_vel, franka_dof_pos, actions):
    # the drawer counts as open from 90 % of its range
    target_qpos = 0.9 * 0.4
    drawer_qpos = cabinet_dof_pos[:, 3]

    # Stage 1: the gripper reaches the handle
    ee_to_handle = torch.norm(franka_grasp_pos - drawer_grasp_pos, dim=-1)
    reach_reward = -ee_to_handle

    # Stage 2: pull
    remaining = torch.clamp(target_qpos - drawer_qpos, min=0.0)
    pull_reward = 1.0 - remaining / target_qpos

    # Stage 3: slow down where it is open
    opened = drawer_qpos >= target_qpos
    stop_reward = torch.where(opened, torch.exp(-torch.abs(cabinet_dof_vel[:, 3])), torch.zeros_like(drawer_qpos))

    fingers_open = franka_dof_pos[:, 7:9].sum(dim=1) / 0.08
    reward = 0.5 * reach_reward + 2 * pull_reward + stop_reward + 0.1 * fingers_open - 1e-3 * actions.square().sum(dim=1)
    return reward, {"reach": 0.5 * reach_reward, "pull": 2 * pull_reward, "stop": stop_reward, "fingers": 0.1 * fingers_open}
