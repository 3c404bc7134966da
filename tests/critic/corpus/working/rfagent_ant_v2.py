# environment: ant
# Thought: the values of forward_velocity in the feedback grew while those of upright_bonus stayed
# constant, which means that the bonus does not guide the policy. In this version
#   1. the velocity is normalised by a target speed, so that the components have comparable ranges,
#   2. the upright term gates the speed term: speed without balance is worth little,
#   3. a penalty of the joint limits is introduced.
import torch
from typing import Tuple, Dict

@torch.jit.script
def compute_reward_v2(velocity: torch.Tensor, up_vec: torch.Tensor, heading_vec: torch.Tensor, dof_pos: torch.Tensor,
                      dof_limits_lower: torch.Tensor, dof_limits_upper: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    target_speed = 4.0
    speed_ratio = torch.clamp(velocity[:, 0] / target_speed, -1.0, 1.5)

    upright_gate = torch.sigmoid(10.0 * (up_vec[:, 2] - 0.7))
    gated_speed = speed_ratio * upright_gate

    heading = heading_vec[:, 0]
    heading_reward = 0.3 * torch.where(heading > 0.0, heading, torch.zeros_like(heading))

    scaled = unscale(dof_pos, dof_limits_lower, dof_limits_upper)
    at_limit = (torch.abs(scaled) > 0.98).float()
    limit_penalty = -0.05 * torch.sum(at_limit, dim=-1)

    total_reward = gated_speed + heading_reward + limit_penalty

    reward_components = {"gated_speed": gated_speed, "heading_reward": heading_reward, "limit_penalty": limit_penalty}
    return total_reward, reward_components
