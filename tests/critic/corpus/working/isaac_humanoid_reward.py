# environment: humanoid
from typing import Tuple, Dict
import torch
from torch import Tensor


@torch.jit.script
def compute_humanoid_reward(
    obs_buf: Tensor,
    actions: Tensor,
    up_weight: float,
    heading_weight: float,
    potentials: Tensor,
    prev_potentials: Tensor,
    actions_cost_scale: float,
    energy_cost_scale: float,
    joints_at_limit_cost_scale: float,
    max_motor_effort: float,
    motor_efforts: Tensor,
    termination_height: float,
    death_cost: float
) -> Tuple[Tensor, Dict[str, Tensor]]:
    heading_weight_tensor = torch.ones_like(obs_buf[:, 11]) * heading_weight
    heading_reward = torch.where(obs_buf[:, 11] > 0.8, heading_weight_tensor, heading_weight * obs_buf[:, 11] / 0.8)

    up_reward = torch.zeros_like(heading_reward)
    up_reward = torch.where(obs_buf[:, 10] > 0.93, up_reward + up_weight, up_reward)

    actions_cost = torch.sum(actions ** 2, dim=-1)

    # the closer a joint is to its limit, the more it costs
    motor_effort_ratio = motor_efforts / max_motor_effort
    scaled_cost = joints_at_limit_cost_scale * (torch.abs(obs_buf[:, 12:33]) - 0.98) / 0.02
    dof_at_limit_cost = torch.sum((torch.abs(obs_buf[:, 12:33]) > 0.98) * scaled_cost * motor_effort_ratio, dim=-1)

    electricity_cost = torch.sum(torch.abs(actions * obs_buf[:, 33:54]) * motor_effort_ratio, dim=-1)

    alive_reward = torch.ones_like(potentials) * 2.0
    progress_reward = potentials - prev_potentials

    total_reward = progress_reward + alive_reward + up_reward + heading_reward \
        - actions_cost_scale * actions_cost - energy_cost_scale * electricity_cost - dof_at_limit_cost

    total_reward = torch.where(obs_buf[:, 0] < termination_height, torch.ones_like(total_reward) * death_cost, total_reward)
    components = {"progress": progress_reward, "alive": alive_reward, "up": up_reward, "heading": heading_reward, "actions": actions_cost,
                  "electricity": electricity_cost, "limits": dof_at_limit_cost}
    return total_reward, components
