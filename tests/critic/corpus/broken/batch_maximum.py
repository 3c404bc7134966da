# environment: cabinet
# broken: the reward of a row depends on the largest distance in the batch
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(franka_grasp_pos: torch.Tensor, drawer_grasp_pos: torch.Tensor, cabinet_dof_pos: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    distance = torch.norm(franka_grasp_pos - drawer_grasp_pos, dim=-1)
    normalized_distance = distance / torch.max(distance)
    reach_reward = 1.0 - normalized_distance
    open_reward = cabinet_dof_pos[:, 3]
    return reach_reward + 2.0 * open_reward, {"reach_reward": reach_reward, "open_reward": 2.0 * open_reward}
