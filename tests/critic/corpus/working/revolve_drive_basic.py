# environment: car
import torch
from typing import Dict, Tuple

def compute_reward(collision: torch.Tensor, speed: torch.Tensor, min_pos: torch.Tensor, steering: torch.Tensor, prev_steering: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Define temperature parameters for each reward component
    speed_temp = 0.5
    position_temp = 1.0
    smoothness_temp = 2.0

    # Collisions are penalised heavily
    collision_reward = -100.0 * collision

    # Optimal speed between 9 and 10.5 m/s
    low, high = 9.0, 10.5
    below = torch.clamp(low - speed, min=0.0)
    above = torch.clamp(speed - high, min=0.0)
    speed_reward = torch.exp(-speed_temp * (below + above))

    # Stay close to the middle of the lane
    position_reward = torch.exp(-position_temp * min_pos)

    # Smooth steering
    smoothness_reward = torch.exp(-smoothness_temp * torch.abs(steering - prev_steering))

    total_reward = collision_reward + 0.4 * speed_reward + 0.4 * position_reward + 0.2 * smoothness_reward
    return total_reward, {
        "collision_reward": collision_reward,
        "speed_reward": speed_reward,
        "position_reward": position_reward,
        "smoothness_reward": smoothness_reward,
    }
