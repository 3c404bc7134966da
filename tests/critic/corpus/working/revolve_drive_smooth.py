# environment: car
from typing import Tuple, Dict
import numpy as np
import torch

def compute_reward(speed_history: torch.Tensor, min_pos: torch.Tensor, collision: torch.Tensor, heading_error: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    current_speed = speed_history[:, -1]

    # Smoothness: standard deviation of the speed over the last steps
    speed_std = torch.std(speed_history, dim=1)
    smoothness_reward = torch.exp(-speed_std)

    # Speed: best at 9.5
    speed_reward = torch.exp(-((current_speed - 9.5) ** 2) / (2 * 3.0 ** 2)) / np.sqrt(2 * np.pi)

    # Position within the lane
    position_reward = 1.0 - torch.tanh(min_pos / 1.5)

    # Orientation within the lane
    heading_reward = torch.cos(heading_error)

    rewards = {
        'smoothness': 0.2 * smoothness_reward,
        'speed': speed_reward,
        'position': 0.5 * position_reward,
        'heading': 0.1 * heading_reward,
        'collision': -20.0 * collision,
    }
    total = torch.stack(list(rewards.values()), dim=0).sum(dim=0)
    return total, rewards
