# environment: humanoid
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(root_states: torch.Tensor, up_vec: torch.Tensor, heading_vec: torch.Tensor, dof_force_tensor: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    """
    Reward running as fast as possible while staying upright.
    """
    lin_vel = root_states[:, 7:10]
    speed = torch.norm(lin_vel[:, :2], p=2, dim=1)

    # how much of the speed is along the heading
    forward = torch.tensor([1.0, 0.0, 0.0], device=root_states.device).expand_as(heading_vec)
    alignment = torch.nn.functional.cosine_similarity(forward, heading_vec, dim=-1)
    forward_vel = lin_vel[:, 0]

    velocity_temp = 0.4
    velocity_reward = torch.sigmoid(velocity_temp * forward_vel) * speed

    upright_reward = torch.clamp(up_vec[:, 2], min=0.0, max=1.0)
    torque_penalty = torch.mean(torch.abs(dof_force_tensor), dim=-1) * 0.002

    total_reward = 1.5 * velocity_reward + 0.5 * upright_reward + 0.25 * alignment - torque_penalty

    return total_reward, {"velocity_reward": velocity_reward, "upright_reward": upright_reward, "alignment": alignment, "torque_penalty": torque_penalty}
