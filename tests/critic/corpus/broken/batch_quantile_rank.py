# environment: cart
# broken: the rank in the batch takes the place of the own angle
import torch

def compute_reward(pole_angle):
    rank = torch.argsort(torch.argsort(pole_angle.abs())).float() / pole_angle.shape[0]
    return -rank, {"rank": -rank}
