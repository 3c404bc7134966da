# environment: cabinet
# broken: the square root of a velocity that is negative while the drawer closes
import torch

def compute_reward(cabinet_dof_pos, cabinet_dof_vel):
    opening = cabinet_dof_pos[:, 3] * 5
    pulling = torch.sqrt(cabinet_dof_vel[:, 3])
    return opening + 0.1 * pulling, {"opening": opening, "pulling": 0.1 * pulling}
