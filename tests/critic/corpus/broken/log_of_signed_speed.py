# environment: ant
# broken: the logarithm of a velocity, which is negative half of the time
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(root_states: torch.Tensor, heading_vec: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    forward_velocity = root_states[:, 7]
    velocity_reward = torch.log(forward_velocity + 1.0)
    heading_reward = 0.5 * heading_vec[:, 0]
    return velocity_reward + heading_reward, {"velocity_reward": velocity_reward, "heading_reward": heading_reward}
