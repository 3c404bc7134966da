# environment: ant
import torch
from torch import Tensor
from typing import Tuple, Dict


@torch.jit.script
def compute_ant_reward(
    obs_buf,
    actions,
    up_weight,
    heading_weight,
    potentials,
    prev_potentials,
    actions_cost_scale,
    energy_cost_scale,
    joints_at_limit_cost_scale,
    termination_height,
    death_cost,
):
    # type: (Tensor, Tensor, float, float, Tensor, Tensor, float, float, float, float, float) -> Tuple[Tensor, Dict[str, Tensor]]

    # heading and posture
    heading_proj = obs_buf[:, 11]
    heading_reward = torch.where(heading_proj > 0.8, torch.ones_like(heading_proj) * heading_weight, heading_weight * heading_proj / 0.8)
    up_reward = torch.where(obs_buf[:, 10] > 0.93, torch.zeros_like(heading_reward) + up_weight, torch.zeros_like(heading_reward))

    # costs
    actions_cost = torch.sum(actions ** 2, dim=-1)
    electricity_cost = torch.sum(torch.abs(actions * obs_buf[:, 20:28]), dim=-1)
    dof_at_limit_cost = torch.sum(obs_buf[:, 12:20] > 0.99, dim=-1)

    alive_reward = torch.ones_like(potentials) * 0.5
    progress_reward = potentials - prev_potentials

    total_reward = progress_reward + alive_reward + up_reward + heading_reward - \
        actions_cost_scale * actions_cost - energy_cost_scale * electricity_cost - dof_at_limit_cost * joints_at_limit_cost_scale

    # fallen agents
    total_reward = torch.where(obs_buf[:, 0] < termination_height, torch.ones_like(total_reward) * death_cost, total_reward)

    return total_reward, {
        "progress_reward": progress_reward,
        "alive_reward": alive_reward,
        "up_reward": up_reward,
        "heading_reward": heading_reward,
        "actions_cost": -actions_cost_scale * actions_cost,
        "electricity_cost": -energy_cost_scale * electricity_cost,
        "dof_at_limit_cost": -joints_at_limit_cost_scale * dof_at_limit_cost,
    }
