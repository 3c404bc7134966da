# environment: ant
from isaacgymenvs.utils.torch_jit_utils import *
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(torso_rotation: Tensor, torso_position: Tensor, targets: Tensor, inv_start_rot: Tensor, basis_vec0: Tensor, basis_vec1: Tensor,
                   potentials: Tensor, prev_potentials: Tensor, up_weight: float, heading_weight: float) -> Tuple[Tensor, Dict[str, Tensor]]:
    to_target = targets - torso_position
    to_target[:, 2] = 0.0

    torso_quat, up_proj, heading_proj, up_vec, heading_vec = compute_heading_and_up(
        torso_rotation, inv_start_rot, to_target, basis_vec0, basis_vec1, 2)

    up_reward = up_weight * (up_proj > 0.93).float()
    heading_reward = heading_weight * torch.clamp(heading_proj / 0.8, max=1.0)
    progress_reward = potentials - prev_potentials

    total = progress_reward + up_reward + heading_reward
    return total, {"progress": progress_reward, "up": up_reward, "heading": heading_reward}
