# environment: cabinet
from typing import Tuple, Dict
import math
import torch
from torch import Tensor
@torch.jit.script
def compute_reward(franka_grasp_pos: torch.Tensor, drawer_grasp_pos: torch.Tensor, cabinet_dof_pos: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    distance = torch.norm(franka_grasp_pos - drawer_grasp_pos, dim=-1)
    # Reaching is worth at most 0.5, so that it is never better than opening
    reaching_reward = 0.5 * torch.exp(-4.0 * distance)

    # The top drawer is the last of the cabinet's joints
    drawer = cabinet_dof_pos[:, 3]
    progress_reward = drawer / 0.4
    opened = drawer > 0.35
    goal_bonus = torch.where(opened, torch.tensor(3.0, device=drawer.device), torch.tensor(0.0, device=drawer.device))

    total_reward = reaching_reward + progress_reward + goal_bonus
    return total_reward, {'reaching_reward': reaching_reward, 'progress_reward': progress_reward, 'goal_bonus': goal_bonus}
