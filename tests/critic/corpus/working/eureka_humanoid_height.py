# environment: humanoid
import math
import torch
from torch import Tensor
from typing import Tuple, Dict

@torch.jit.script
def compute_reward_improved(torso_position: Tensor, velocity: Tensor, ang_velocity: Tensor, actions: Tensor, prev_actions: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    # --- parameters -------------------------------------------------
    height_target = 1.34
    height_temp = 0.1
    spin_temp = 0.5
    smooth_temp = 0.05

    # --- forward velocity, saturating -------------------------------
    speed_reward = torch.tanh(velocity[:, 0] / 3.0) * 2.0

    # --- height ------------------------------------------------------
    height_error = torch.abs(torso_position[:, 2] - height_target)
    height_reward = torch.exp(-height_error / height_temp)

    # --- no spinning ---------------------------------------------------
    spin_reward = torch.exp(-spin_temp * torch.norm(ang_velocity, dim=-1))

    # --- smooth actions ------------------------------------------------
    smooth_reward = torch.exp(-smooth_temp * torch.sum((actions - prev_actions) ** 2, dim=-1))

    reward = speed_reward + 0.4 * height_reward + 0.2 * spin_reward + 0.1 * smooth_reward
    return reward, {
        'speed_reward': speed_reward,
        'height_reward': height_reward,
        'spin_reward': spin_reward,
        'smooth_reward': smooth_reward,
    }
