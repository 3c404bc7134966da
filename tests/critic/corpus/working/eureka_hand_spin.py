# environment: hand
import numpy as np
import torch
from typing import Tuple, Dict

@torch.jit.script
def axis_alignment(angvel: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    return torch.sum(angvel * axis, dim=-1)

def compute_reward(object_angvel, z_unit_tensor, object_pos, hand_pos, actions, shadow_hand_dof_vel):
    # speed of rotation about the vertical axis
    spin = axis_alignment(object_angvel, z_unit_tensor)
    target_spin = np.pi
    spin_reward = torch.exp(-torch.abs(spin - target_spin) / np.pi)

    # drop penalty: the cube is below the palm
    drop_penalty = torch.where(object_pos[:, 2] < hand_pos[:, 2], -10.0 * torch.ones_like(spin), torch.zeros_like(spin))

    effort = -0.0002 * (actions ** 2).sum(-1) - 0.00001 * (shadow_hand_dof_vel ** 2).sum(-1)

    reward = spin_reward + drop_penalty + effort
    return reward, dict(spin_reward=spin_reward, drop_penalty=drop_penalty, effort=effort)
