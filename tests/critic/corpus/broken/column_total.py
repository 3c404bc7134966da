# environment: quadcopter
# broken: the total has the shape (batch, 1)
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(root_positions: torch.Tensor, target_root_positions: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    distance = torch.norm(target_root_positions - root_positions, dim=-1, keepdim=True)
    reward = 1.0 / (1.0 + distance * distance)
    return reward, {"reward": reward}
