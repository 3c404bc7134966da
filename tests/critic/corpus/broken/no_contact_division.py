# environment: ant
# broken: 0 / 0 where no foot touches the ground
import torch
from typing import Dict, Tuple

def compute_reward(contact_forces: torch.Tensor, velocity: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    load = contact_forces[:, :, 2]
    share = load / load.sum(dim=-1, keepdim=True)
    evenness_reward = 1.0 - share.max(dim=-1).values
    forward_reward = velocity[:, 0]
    return forward_reward + evenness_reward, {"forward_reward": forward_reward, "evenness_reward": evenness_reward}
