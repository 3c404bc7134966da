# environment: anymal
from typing import Tuple, Dict
import torch

@torch.jit.script
def compute_reward(root_states: torch.Tensor, commands: torch.Tensor, actions: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # commands are given in the frame of the robot
    base_quat = root_states[:, 3:7]
    lin_vel = quat_rotate_inverse(base_quat, root_states[:, 7:10])
    ang_vel = quat_rotate_inverse(base_quat, root_states[:, 10:13])

    lin_vel_error = torch.norm(commands[:, :2] - lin_vel[:, :2], dim=-1)
    yaw_error = torch.abs(commands[:, 2] - ang_vel[:, 2])

    lin_temp = 0.5
    yaw_temp = 0.5
    lin_reward = torch.exp(-lin_vel_error / lin_temp)
    yaw_reward = torch.exp(-yaw_error / yaw_temp)
    action_penalty = -0.01 * torch.norm(actions, dim=-1)

    total_reward = lin_reward + 0.5 * yaw_reward + action_penalty
    return total_reward, {"lin_reward": lin_reward, "yaw_reward": yaw_reward, "action_penalty": action_penalty}
