# environment: cart
# broken: the total has the shape (batch, 1)
import torch

def compute_reward(dof_pos):
    reward = 1.0 / (1.0 + torch.norm(dof_pos, dim=-1, keepdim=True))
    return reward, {"reward": reward}
