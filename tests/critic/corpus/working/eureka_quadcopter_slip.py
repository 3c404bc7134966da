# environment: quadcopter
import torch
from typing import Tuple, Dict

def compute_reward(root_states, target_root_positions, actions) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    positions = root_states[:, 0:3]
    linvels = root_states[:, 7:10]

    temperature = 0.5
    decay = torch.exp(-temperature)  # weight of the secondary terms

    distance = torch.linalg.norm(target_root_positions - positions, dim=-1)
    distance_reward = torch.exp(-distance / temperature)

    # fly towards the target, not away from it
    direction = (target_root_positions - positions) / (distance.unsqueeze(-1) + 1e-6)
    approach = torch.sum(direction * linvels, dim=-1)
    approach_reward = decay * torch.tanh(approach)

    action_penalty = -0.01 * decay * torch.sum(actions ** 2, dim=-1)

    total = distance_reward + approach_reward + action_penalty
    return total, {
        "distance_reward": distance_reward,
        "approach_reward": approach_reward,
        "action_penalty": action_penalty,
    }
