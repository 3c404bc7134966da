# environment: cabinet
import torch
from typing import Tuple, Dict

@torch.jit.script
def compute_reward(franka_grasp_pos: torch.Tensor,
                   drawer_grasp_pos: torch.Tensor,
                   cabinet_dof_pos: torch.Tensor,
                   franka_dof_vel: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    device = franka_grasp_pos.device
    reach_threshold = torch.tensor(0.1, device=device)
    zero = torch.tensor(0.0, device=device)

    d = torch.norm(franka_grasp_pos - drawer_grasp_pos, dim=-1)
    reach = 1.0 / (1.0 + d ** 2)
    reach = reach * reach
    reach = torch.where(d <= reach_threshold, 2.0 * reach, reach)

    # only count the opening where the hand is near the handle
    opened = torch.where(d < 0.2, cabinet_dof_pos[:, 3], zero)

    joint_speed_penalty = torch.sum(torch.square(franka_dof_vel), dim=1) * 0.001

    total = reach + 7.5 * opened - joint_speed_penalty
    return total, {"reach": reach, "opened": opened, "joint_speed_penalty": joint_speed_penalty}
