# environment: hand
# broken: the arc cosine of a scaled product, which is beyond 1 on most states
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(object_rot: torch.Tensor, goal_rot: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    dot = 2.0 * torch.sum(object_rot * goal_rot, dim=-1)
    angle = 2.0 * torch.acos(dot)
    reward = torch.exp(-angle)
    return reward, {"rotation": reward}
