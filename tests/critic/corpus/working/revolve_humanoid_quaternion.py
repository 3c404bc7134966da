# environment: humanoid
import torch
import numpy as np
from typing import Dict, Tuple

def compute_reward(root_states: torch.Tensor, actions: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    quat = root_states[:, 3:7]
    # local up axis, turned into the world
    up = torch.tensor([0.0, 0.0, 1.0], device=root_states.device).repeat(root_states.shape[0], 1)
    world_up = quat_rotate(quat, up)
    lean = torch.acos(torch.clamp(world_up[:, 2], -1.0, 1.0))
    lean_reward = 1.0 - lean / np.pi

    local_velocity = quat_rotate_inverse(quat, root_states[:, 7:10])
    run_reward = torch.clamp(local_velocity[:, 0], -2.0, 8.0)
    drift_penalty = -0.5 * torch.abs(local_velocity[:, 1])

    effort_temperature = 0.02
    effort_reward = torch.exp(-effort_temperature * actions.pow(2).sum(-1))

    total = run_reward + lean_reward + drift_penalty + 0.1 * effort_reward
    return total, {"run": run_reward, "lean": lean_reward, "drift": drift_penalty, "effort": 0.1 * effort_reward}
