# environment: humanoid
# broken: adds the joints of the legs to all joints
import torch

def compute_reward(dof_pos, dof_vel, velocity):
    legs = dof_pos[:, 5:17]
    motion = (legs * dof_vel).sum(dim=-1)
    forward = velocity[:, 0]
    return forward - 0.01 * motion, {"forward": forward, "motion": -0.01 * motion}
