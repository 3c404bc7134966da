# environment: car
import torch
from typing import Tuple, Dict

def compute_reward(speed: torch.Tensor, speed_limit: torch.Tensor, min_pos: torch.Tensor, collision: torch.Tensor, actions: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    if actions.dim() == 1:
        actions = actions.unsqueeze(0)

    # how good each aspect is, from 0 to 1
    safety = 1 - collision
    lane = torch.exp(-min_pos)
    pace = torch.clamp(1 - torch.abs(speed - 0.9 * speed_limit) / (0.9 * speed_limit), min=0)
    gentle = 1 - actions.abs().mean(dim=1)

    # priorities: safety over lane over pace over comfort
    aspects = torch.stack([safety, lane, pace, gentle], dim=1)
    priorities = torch.tensor([4.0, 2.0, 1.5, 0.5], device=speed.device)
    total = (aspects * priorities).sum(dim=1) / priorities.sum() - 1.0

    names = ["safety", "lane", "pace", "gentle"]
    components = {}
    for i in range(4):
        components[names[i] + "_reward"] = aspects[:, i] * priorities[i] / priorities.sum()
    return total, components
