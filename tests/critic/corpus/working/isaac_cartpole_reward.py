# environment: cart
import numpy as np
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_cartpole_reward(pole_angle, pole_vel, cart_vel, cart_pos, reset_dist):
    # type: (Tensor, Tensor, Tensor, Tensor, float) -> Tuple[Tensor, Dict[str, Tensor]]

    # the squared angle, and small penalties of the velocities
    upright_reward = 1.0 - pole_angle * pole_angle
    cart_penalty = -0.01 * torch.abs(cart_vel)
    pole_penalty = -0.005 * torch.abs(pole_vel)
    reward = upright_reward + cart_penalty + pole_penalty

    # lost poles and carts
    reward = torch.where(torch.abs(cart_pos) > reset_dist, torch.ones_like(reward) * -2.0, reward)
    reward = torch.where(torch.abs(pole_angle) > np.pi / 2, torch.ones_like(reward) * -2.0, reward)
    return reward, {"upright_reward": upright_reward, "cart_penalty": cart_penalty, "pole_penalty": pole_penalty}
