# environment: cabinet
# broken: asks for a variable that the environment does not have
import torch

def compute_reward(franka_grasp_pos, drawer_handle_velocity, cabinet_dof_pos):
    pulling = drawer_handle_velocity[:, 0]
    opened = cabinet_dof_pos[:, 3]
    near = -franka_grasp_pos.norm(dim=-1)
    return pulling + opened + near, {"pulling": pulling, "opened": opened, "near": near}
