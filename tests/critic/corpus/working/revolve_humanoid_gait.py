# environment: humanoid
import torch
from torch import Tensor
from typing import Tuple, Dict

def compute_reward(contact_forces: Tensor, velocity: Tensor, dof_pos: Tensor, previous_dof_pos: Tensor, dt: float) -> Tuple[Tensor, Dict[str, Tensor]]:
    # left and right foot should take turns
    load = contact_forces[..., 2]
    left, right = load[:, 0], load[:, 1]
    total_load = left + right
    imbalance = torch.abs(left - right) / (total_load + 1e-6)
    alternation_reward = 0.3 * imbalance * (total_load > 1.0).float()

    flight = (total_load < 1.0).float()
    flight_reward = 0.2 * flight * torch.clamp(velocity[:, 0], min=0.0)

    joint_speed = (dof_pos - previous_dof_pos) / dt
    smooth_penalty = -0.0005 * torch.norm(joint_speed, dim=-1)

    forward_reward = torch.log1p(torch.clamp(velocity[:, 0], min=0.0))

    reward = forward_reward + alternation_reward + flight_reward + smooth_penalty
    return reward, {"forward": forward_reward, "alternation": alternation_reward, "flight": flight_reward, "smooth": smooth_penalty}
