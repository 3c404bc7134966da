# environment: hand
from typing import Tuple, Dict
import math
import torch
from torch import Tensor
@torch.jit.script
def compute_reward(object_rot: torch.Tensor, goal_rot: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # relative orientation; (0, 0, 0, 1) where they agree
    relative = quat_mul(object_rot, quat_conjugate(goal_rot))
    misalignment = 1.0 - torch.abs(relative[:, -1])

    temperature = 8.0
    alignment_reward = torch.exp(-temperature * misalignment)

    tolerance = 0.02
    bonus = torch.where(misalignment < tolerance, 1.0, 0.0)

    total_reward = alignment_reward + bonus
    return total_reward, {"alignment_reward": alignment_reward, "bonus": bonus}
