# environment: quadcopter
from typing import Tuple, Dict
import math
import torch
from torch import Tensor
@torch.jit.script
def compute_reward(root_positions: torch.Tensor, target_root_positions: torch.Tensor, root_linvels: torch.Tensor, root_quats: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    error = target_root_positions - root_positions
    distance = torch.norm(error, dim=-1)

    # coarse and fine closeness: one leads there, the other one holds the position
    coarse = 1.0 - torch.clamp(distance / 4.0, 0.0, 1.0)
    fine = torch.exp(-distance / 0.15)

    # velocity that matters only near the target
    near = torch.exp(-(distance / 0.5) ** 2)
    stillness = near * torch.exp(-torch.norm(root_linvels, dim=-1))

    # up axis of the body
    ups = quat_axis(root_quats, 2)
    upright = torch.clamp(ups[..., 2], 0.0, 1.0) * 0.2

    total_reward = coarse + 2.0 * fine + stillness + upright
    return total_reward, {"coarse": coarse, "fine": fine, "stillness": stillness, "upright": upright}
