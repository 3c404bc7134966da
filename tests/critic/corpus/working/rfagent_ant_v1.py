# environment: ant
# Thought: running means a large velocity along the target direction. The first version only
# uses the speed and a small upright bonus, so that the later versions have something to refine.
import torch
from typing import Tuple, Dict

@torch.jit.script
def compute_reward(velocity: torch.Tensor, up_vec: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    forward_velocity = velocity[:, 0]
    lateral_velocity = torch.norm(velocity[:, 1:], p=2, dim=-1)

    lateral_weight = 0.3
    upright_weight = 0.5

    lateral_penalty = -lateral_weight * lateral_velocity
    upright_bonus = upright_weight * torch.exp(2.0 * (up_vec[:, 2] - 1.0))

    total_reward = forward_velocity + lateral_penalty + upright_bonus
    return total_reward, {
        "forward_velocity": forward_velocity,
        "lateral_penalty": lateral_penalty,
        "upright_bonus": upright_bonus,
    }
