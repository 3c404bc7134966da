# environment: cart
# broken: reads a third joint
import torch

def compute_reward(dof_pos):
    angles = sum(dof_pos[:, i].abs() for i in range(3))
    return -angles, {"angles": -angles}
