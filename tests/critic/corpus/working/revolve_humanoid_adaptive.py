# environment: humanoid
from typing import Dict, Tuple
import torch

def compute_reward(velocity: torch.Tensor, torso_position: torch.Tensor, torso_rotation: torch.Tensor, terminated: torch.Tensor, progress_buf: torch.Tensor, max_episode_length: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # weights shift from balance to speed within an episode
    phase = (progress_buf / max_episode_length).clamp(0, 1)
    speed_weight = 0.5 + phase
    balance_weight = 1.5 - phase

    speed = velocity[:, 0].clamp(min=-1.0)
    w = torso_rotation[:, 3]
    z = torso_rotation[:, 2]
    balance = w * w + z * z                  # squared cosine of half the lean
    height_bonus = ((torso_position[:, 2] - 1.0) > 0).float() * 0.2

    reward = speed_weight * speed + balance_weight * balance + height_bonus
    reward = reward - 10.0 * terminated.float()
    return reward, {"speed": speed_weight * speed, "balance": balance_weight * balance, "height": height_bonus, "fall": -10.0 * terminated.float()}
