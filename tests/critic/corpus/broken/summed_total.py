# environment: cart
# broken: the total is one number for the whole batch
import torch

def compute_reward(dof_pos, dof_vel):
    return -torch.norm(dof_pos) - torch.norm(dof_vel), {"place": -torch.norm(dof_pos), "speed": -torch.norm(dof_vel)}
