# environment: ball_balance
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_bbot_reward(tray_positions, ball_positions, ball_linvels, ball_radius):
    # type: (Tensor, Tensor, Tensor, float) -> Tuple[Tensor, Dict[str, Tensor]]
    offset = ball_positions - tray_positions
    ball_dist = torch.norm(offset, p=2, dim=-1)
    ball_speed = torch.norm(ball_linvels, p=2, dim=-1)
    pos_reward = 1.0 / (1.0 + ball_dist)
    speed_reward = 1.0 / (1.0 + ball_speed)
    reward = pos_reward * speed_reward
    reward = torch.where(ball_positions[..., 2] < ball_radius * 1.5, torch.zeros_like(reward), reward)
    return reward, {"pos_reward": pos_reward, "speed_reward": speed_reward}
