# environment: anymal
# v2 -- after reading the feedback of v1: tracking is good, but the gait shuffles. I add an air-time
# term in the manner of legged robots papers, active only where a movement is commanded, and a
# penalty of the action rate.
from typing import Tuple, Dict
import torch
from torch import Tensor

def compute_reward_v2(base_lin_vel: Tensor, base_ang_vel: Tensor, commands: Tensor, feet_air_time: Tensor, contact_forces: Tensor,
                      actions: Tensor, prev_actions: Tensor, projected_gravity: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    # --- tracking ---
    vel_err = ((commands[:, :2] - base_lin_vel[:, :2]) ** 2).sum(dim=1)
    yaw_err = (commands[:, 2] - base_ang_vel[:, 2]) ** 2
    tracking = torch.exp(-4.0 * vel_err) + 0.5 * torch.exp(-4.0 * yaw_err)

    # --- gait ---
    moving = (torch.norm(commands[:, :2], dim=1) > 0.1).float()
    foot_contact = contact_forces[:, 5:9, 2] > 1.0
    first_contact = torch.logical_and(foot_contact, feet_air_time > 0.0)
    swing = torch.sum(torch.clamp(feet_air_time, max=0.5) * (~foot_contact), dim=1) * moving

    # --- regularisation ---
    level = torch.sum(projected_gravity[:, :2] ** 2, dim=1)
    rate = torch.sum((actions - prev_actions) ** 2, dim=1)

    reward = tracking + 0.5 * swing + 0.05 * first_contact.sum(dim=1) - 0.5 * level - 0.01 * rate
    return reward, {"tracking": tracking, "swing": swing, "level": level, "rate": rate}
