# environment: cabinet
# broken: uses a weight that is defined nowhere
import torch

def compute_reward(franka_grasp_pos, drawer_grasp_pos, cabinet_dof_pos):
    distance = torch.norm(franka_grasp_pos - drawer_grasp_pos, dim=-1)
    reach = torch.exp(-distance / distance_temperature)
    opened = cabinet_dof_pos[:, 3]
    return reach + opened, {"reach": reach, "opened": opened}
