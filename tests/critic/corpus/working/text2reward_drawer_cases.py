# environment: cabinet
import torch
from torch import Tensor

def compute_reward(franka_grasp_pos: Tensor, franka_lfinger_pos: Tensor, franka_rfinger_pos: Tensor, drawer_grasp_pos: Tensor, cabinet_dof_pos: Tensor):
    # milestones, each worth more than the one before
    handle = drawer_grasp_pos
    fingers = torch.stack([franka_lfinger_pos, franka_rfinger_pos], dim=1)          # (N, 2, 3)
    finger_dist = torch.norm(fingers - handle.unsqueeze(1), dim=-1)                 # (N, 2)
    centre_dist = torch.norm(franka_grasp_pos - handle, dim=-1)

    reward = torch.full_like(centre_dist, 0.0)
    for threshold, bonus in [(0.3, 0.5), (0.15, 1.0), (0.05, 2.0)]:
        reward += bonus * (centre_dist < threshold).float()
    milestones = reward.clone()

    finger_term = -finger_dist.max(dim=1)[0]
    open_term = 10.0 * cabinet_dof_pos[..., 3].clamp(0.0, 0.4) ** 2
    reward += finger_term + open_term
    return reward, {"milestones": milestones, "fingers": finger_term, "open": open_term}
