# environment: ant
import torch
from torch import Tensor
from typing import Tuple, Dict


@torch.jit.script
def compute_reward(
    potentials: Tensor,
    prev_potentials: Tensor,
    up_proj: Tensor,
    heading_proj: Tensor,
    actions: Tensor,
    dof_vel: Tensor,
) -> Tuple[Tensor, Dict[str, Tensor]]:
    device = potentials.device

    # progress towards the target since the last step
    progress = potentials - prev_potentials

    # bonuses for posture and heading
    up_bonus = torch.where(up_proj > 0.93, torch.tensor(0.1, device=device), torch.tensor(0.0, device=device))
    heading_bonus = torch.where(heading_proj > 0.8, torch.ones_like(heading_proj) * 0.5, 0.5 * heading_proj / 0.8)

    # costs
    action_cost = 0.005 * torch.sum(actions**2, dim=-1)
    electricity_cost = 0.05 * torch.sum(torch.abs(actions * dof_vel * 0.2), dim=-1)

    total = progress + up_bonus + heading_bonus - action_cost - electricity_cost

    components: Dict[str, Tensor] = {}
    components["progress"] = progress
    components["up_bonus"] = up_bonus
    components["heading_bonus"] = heading_bonus
    components["action_cost"] = -action_cost
    components["electricity_cost"] = -electricity_cost
    return total, components
