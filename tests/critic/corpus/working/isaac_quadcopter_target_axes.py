# environment: quadcopter
from isaacgym.torch_utils import *
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(root_states: Tensor, target_root_positions: Tensor, dof_positions: Tensor, dof_velocities: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    root_quats = root_states[:, 3:7]
    # the target as the body sees it
    local_target = quat_rotate_inverse(root_quats, target_root_positions - root_states[:, 0:3])
    local_linvel = quat_rotate_inverse(root_quats, root_states[:, 7:10])

    dist = torch.norm(local_target, dim=-1)
    dist_rew = torch.exp(-dist)
    direction = normalize(local_target)
    approach_rew = 0.2 * torch.sum(direction * local_linvel, dim=-1)

    limits = tensor_clamp(dof_positions, torch.full_like(dof_positions, -0.5), torch.full_like(dof_positions, 0.5))
    limit_rew = -torch.sum(torch.abs(dof_positions - limits), dim=-1)
    joint_rew = -0.001 * torch.sum(torch.square(dof_velocities), dim=-1)

    reward = dist_rew + approach_rew + limit_rew + joint_rew
    return reward, {"dist_rew": dist_rew, "approach_rew": approach_rew, "limit_rew": limit_rew, "joint_rew": joint_rew}
