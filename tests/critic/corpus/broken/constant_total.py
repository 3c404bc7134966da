# environment: cart
# broken: the penalties are multiplied by 0, so that every state has the same reward
import torch

def compute_reward(pole_angle, cart_pos):
    alive = torch.ones_like(pole_angle)
    weight = 1 // 2
    upright = -weight * pole_angle.abs()
    centred = -weight * cart_pos.abs()
    return alive + upright + centred, {"alive": alive, "upright": upright, "centred": centred}
