# environment: anymal
import torch
from typing import Tuple, Dict

@torch.jit.script
def compute_reward(root_states: torch.Tensor, commands: torch.Tensor, torques: torch.Tensor, dof_pos: torch.Tensor, default_dof_pos: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    base_quat = root_states[:, 3:7]
    base_lin_vel = quat_rotate_inverse(base_quat, root_states[:, 7:10])
    base_ang_vel = quat_rotate_inverse(base_quat, root_states[:, 10:13])

    # tracking of the commands
    lin_temp = 0.25
    ang_temp = 0.25
    lin_error = torch.sum(torch.square(commands[:, :2] - base_lin_vel[:, :2]), dim=1)
    ang_error = torch.square(commands[:, 2] - base_ang_vel[:, 2])
    lin_reward = torch.exp(-lin_error / lin_temp)
    ang_reward = 0.5 * torch.exp(-ang_error / ang_temp)

    # regularisation
    torque_penalty = -2.5e-5 * torch.sum(torch.square(torques), dim=1)
    pose_penalty = -0.05 * torch.sum(torch.abs(dof_pos - default_dof_pos), dim=1)

    total_reward = lin_reward + ang_reward + torque_penalty + pose_penalty
    reward_components = {"lin_reward": lin_reward, "ang_reward": ang_reward, "torque_penalty": torque_penalty, "pose_penalty": pose_penalty}
    return total_reward, reward_components
