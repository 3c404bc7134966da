# environment: anymal
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_anymal_reward(
    root_states,
    commands,
    torques,
    contact_forces,
    lin_vel_xy_scale,
    ang_vel_z_scale,
    torque_scale,
):
    # type: (Tensor, Tensor, Tensor, Tensor, float, float, float) -> Tuple[Tensor, Dict[str, Tensor]]
    base_quat = root_states[:, 3:7]
    base_lin_vel = quat_rotate_inverse(base_quat, root_states[:, 7:10])
    base_ang_vel = quat_rotate_inverse(base_quat, root_states[:, 10:13])

    # velocity tracking
    lin_vel_error = torch.sum(torch.square(commands[:, :2] - base_lin_vel[:, :2]), dim=1)
    ang_vel_error = torch.square(commands[:, 2] - base_ang_vel[:, 2])
    rew_lin_vel_xy = torch.exp(-lin_vel_error / 0.25) * lin_vel_xy_scale
    rew_ang_vel_z = torch.exp(-ang_vel_error / 0.25) * ang_vel_z_scale

    # torque penalty
    rew_torque = torch.sum(torch.square(torques), dim=1) * torque_scale

    total_reward = rew_lin_vel_xy + rew_ang_vel_z + rew_torque
    total_reward = torch.clip(total_reward, 0.0, None)

    # the base hits the ground
    fallen = torch.norm(contact_forces[:, 0, :], dim=1) > 1.0
    total_reward = torch.where(fallen, torch.zeros_like(total_reward), total_reward)
    return total_reward, {"rew_lin_vel_xy": rew_lin_vel_xy, "rew_ang_vel_z": rew_ang_vel_z, "rew_torque": rew_torque, "fallen": fallen}
