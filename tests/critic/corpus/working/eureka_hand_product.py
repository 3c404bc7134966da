# environment: hand
import torch
from typing import Dict, Tuple
from isaacgym.torch_utils import *

@torch.jit.script
def compute_reward(object_rot: torch.Tensor, goal_rot: torch.Tensor, object_pos: torch.Tensor, goal_pos: torch.Tensor, object_linvel: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # cosine of half the angle between the orientations; the sign of a quaternion means nothing
    dot = torch.abs(torch.sum(object_rot * goal_rot, dim=-1))
    dot = torch.clamp(dot, 0.0, 1.0)
    angle = 2.0 * torch.acos(dot)
    rot_temperature = 0.7
    rot_reward = torch.exp(-angle / rot_temperature)

    pos_temperature = 15.0
    pos_reward = torch.exp(-pos_temperature * torch.norm(object_pos - goal_pos, dim=-1))

    vel_temperature = 1.0
    vel_reward = torch.exp(-vel_temperature * torch.norm(object_linvel, dim=-1))

    # all of them must be good at once
    reward = rot_reward * pos_reward * vel_reward

    return reward, {"rot_reward": rot_reward, "pos_reward": pos_reward, "vel_reward": vel_reward}
