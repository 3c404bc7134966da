# environment: ant
# broken: sets the height in root_states itself to 0, through a view
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(root_states: torch.Tensor, targets: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    torso_position = root_states[:, 0:3]
    torso_position[:, 2] = 0.0
    distance = torch.norm(targets - torso_position, dim=-1)
    distance_reward = -0.01 * distance
    speed_reward = root_states[:, 7]
    return distance_reward + speed_reward, {"distance_reward": distance_reward, "speed_reward": speed_reward}
