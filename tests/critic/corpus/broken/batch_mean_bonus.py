# environment: humanoid
# broken: the exponential of the speed is averaged over the batch, so that nobody's own speed counts
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(root_states: torch.Tensor, up_vec: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    speed = torch.norm(root_states[:, 7:10], p=2, dim=-1)
    speed_reward = torch.exp(-0.1 * (5.0 - speed)).mean()
    upright_reward = up_vec[:, 2]
    total = speed_reward + upright_reward
    return total, {"upright_reward": upright_reward, "speed_reward": speed_reward * torch.ones_like(upright_reward)}
