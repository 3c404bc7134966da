# environment: hand
import numpy as np
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def turn_over(rot: Tensor, x_unit: Tensor) -> Tensor:
    # goal: upside down, half a turn about x
    half_turn = quat_from_angle_axis(torch.ones(rot.shape[0], device=rot.device) * np.pi, x_unit)
    return quat_mul(half_turn, rot)

@torch.jit.script
def compute_reward(object_rot: Tensor, goal_rot: Tensor, x_unit_tensor: Tensor, rot_eps: float, rot_reward_scale: float, action_penalty_scale: float, actions: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    target = turn_over(goal_rot, x_unit_tensor)
    quat_diff = quat_mul(object_rot, quat_conjugate(target))
    rot_dist = 2.0 * torch.asin(torch.clamp(torch.norm(quat_diff[:, 0:3], p=2, dim=-1), max=1.0))
    rot_rew = rot_reward_scale / (rot_dist + rot_eps)
    action_rew = action_penalty_scale * torch.sum(actions ** 2, dim=-1)
    return rot_rew + action_rew, {"rot_rew": rot_rew, "action_rew": action_rew}
