# environment: ant
import torch

def compute_dense_reward(torso_position, velocity, up_vec, actions, dof_force_tensor, contact_forces):
    # encourage to move forward (x is forward)
    forward_reward = velocity[:, 0]

    # healthy: neither too low nor turned over
    healthy_z = torch.logical_and(torso_position[:, 2] >= 0.4, torso_position[:, 2] <= 1.0)
    healthy = torch.logical_and(healthy_z, up_vec[:, 2] > 0.0)
    healthy_reward = healthy.to(torch.float32)

    # control and contact costs
    control_cost = 0.05 * torch.sum(actions * actions, dim=1)
    impact = torch.clamp(contact_forces.flatten(1), -1.0, 1.0)
    contact_cost = 5e-4 * torch.sum(impact ** 2, dim=1)
    torque_cost = 1e-5 * torch.sum(dof_force_tensor ** 2, dim=1)

    reward = forward_reward + healthy_reward - control_cost - contact_cost - torque_cost
    return reward, {"forward_reward": forward_reward, "healthy_reward": healthy_reward, "control_cost": -control_cost,
                    "contact_cost": -contact_cost, "torque_cost": -torque_cost}
