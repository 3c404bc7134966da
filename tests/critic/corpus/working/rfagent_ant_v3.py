# environment: ant
# Thought: v2 makes the ant stable but slow. The gate saturates, so I replace it with a smooth
# product, and make the speed term convex by an exponential: going from 3 to 4 m/s should be
# worth more than going from 0 to 1. The exponent is bounded to be on the safe side.
from typing import Tuple, Dict
import math
import torch
from torch import Tensor

@torch.jit.script
def compute_reward(root_states: Tensor, up_vec: Tensor, heading_vec: Tensor, actions: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    forward_velocity = root_states[:, 7]
    exponent = torch.clamp(0.5 * forward_velocity, max=4.0)
    speed_term = (torch.exp(exponent) - 1.0) / (math.e - 1.0)

    balance = torch.clamp(up_vec[:, 2], 0.0, 1.0)
    heading = torch.clamp(heading_vec[:, 0], 0.0, 1.0)
    posture_factor = 0.5 * (balance + heading)

    reward_run = speed_term * posture_factor
    reward_alive = 0.1 * balance
    penalty_energy = -0.002 * torch.sum(torch.square(actions), dim=-1)

    total_reward = reward_run + reward_alive + penalty_energy
    return total_reward, {"run": reward_run, "alive": reward_alive, "energy": penalty_energy}
