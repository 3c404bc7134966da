# environment: cart
# broken: random
import torch

def compute_reward(pole_angle):
    # a little noise helps to leave local optima
    noise = 0.01 * torch.randn_like(pole_angle)
    return noise - pole_angle.abs(), {"noise": noise, "upright": -pole_angle.abs()}
