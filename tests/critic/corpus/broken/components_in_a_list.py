# environment: cart
# broken: the components are a list without names
import torch

def compute_reward(pole_angle, cart_pos):
    upright = torch.cos(pole_angle)
    centred = -0.05 * cart_pos.abs()
    return upright + centred, [upright, centred]
