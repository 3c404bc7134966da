# environment: humanoid
import torch
from typing import Tuple, Dict

@torch.jit.script
def compute_reward(velocity: torch.Tensor, torso_position: torch.Tensor, actions: torch.Tensor, up_proj: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Reward components
    forward_reward = 1.25 * velocity[:, 0]
    healthy = torch.logical_and(torso_position[:, 2] > 1.0, torso_position[:, 2] < 2.0)
    healthy_reward = torch.where(healthy, torch.full_like(forward_reward, 5.0), torch.zeros_like(forward_reward))
    control_cost = 0.1 * torch.sum(torch.square(actions), dim=1)
    upright_reward = torch.clamp(up_proj, min=0.0)

    total_reward = forward_reward + healthy_reward + upright_reward - control_cost
    return total_reward, {
        "forward_reward": forward_reward,
        "healthy_reward": healthy_reward,
        "upright_reward": upright_reward,
        "control_cost": control_cost,
    }
