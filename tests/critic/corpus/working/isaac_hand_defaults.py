# environment: hand
import torch
from torch import Tensor
from typing import Dict, Tuple

def compute_success_reward(object_pose: Tensor, goal_pose: Tensor, object_linvel: Tensor, object_angvel: Tensor,
                           success_tolerance: float = 0.1, reach_goal_bonus: float = 10.0, vel_penalty_scale: float = 0.01) -> Tuple[Tensor, Dict[str, Tensor]]:
    pos_err = torch.norm(object_pose[:, 0:3] - goal_pose[:, 0:3], p=2, dim=-1)
    rel = quat_mul(object_pose[:, 3:7], quat_conjugate(goal_pose[:, 3:7]))
    angle, axis = quat_to_angle_axis(rel)
    rot_err = torch.abs(angle)

    success = (rot_err < success_tolerance) & (pos_err < 0.1)
    success_rew = success.float() * reach_goal_bonus
    err_rew = -pos_err - 0.5 * rot_err
    vel_rew = -vel_penalty_scale * (object_linvel.pow(2).sum(-1) + 0.1 * object_angvel.pow(2).sum(-1))
    return success_rew + err_rew + vel_rew, {"success_rew": success_rew, "err_rew": err_rew, "vel_rew": vel_rew, "success": success}
