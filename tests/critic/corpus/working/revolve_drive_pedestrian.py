# environment: car
import torch
from torch import Tensor
from typing import Dict, Tuple

def compute_reward(pedestrian_position: Tensor, speed: Tensor, brake: Tensor, throttle: Tensor, lane_offset: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    ahead = pedestrian_position[:, 0]
    aside = pedestrian_position[:, 1]

    # a pedestrian is in the way: in front of the car, not far to the side
    in_way = (ahead > 0.0) & (ahead < 15.0) & (torch.abs(aside) < 2.5)
    stopping_distance = speed ** 2 / (2.0 * 4.0)

    danger = torch.where(in_way, torch.sigmoid(stopping_distance - ahead), torch.zeros_like(ahead))
    braking_bonus = torch.where(in_way, brake, torch.zeros_like(brake))
    cruising = torch.where(in_way, torch.zeros_like(speed), torch.tanh(speed / 8.0))

    both_pedals = throttle * brake
    lane_penalty = 0.2 * lane_offset.pow(2)

    total_reward = cruising + 0.5 * braking_bonus - 3.0 * danger - both_pedals - lane_penalty
    reward_components: Dict[str, Tensor] = {
        "cruising": cruising,
        "braking_bonus": braking_bonus,
        "danger": danger,
        "both_pedals": both_pedals,
        "lane_penalty": lane_penalty,
    }
    return total_reward, reward_components
