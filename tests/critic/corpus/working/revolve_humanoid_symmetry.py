# environment: humanoid
import torch

def compute_reward(dof_pos, dof_vel, velocity, up_vec, heading_vec, dof_force_tensor):
    # indices of the joints on both sides
    right = [5, 6, 7, 8, 9, 10]
    left = [11, 12, 13, 14, 15, 16]
    antiphase = (dof_vel[:, right] * dof_vel[:, left]).mean(dim=-1)
    antiphase_reward = torch.sigmoid(-0.2 * antiphase)

    power = (dof_force_tensor * dof_vel).abs().sum(dim=-1)
    efficiency = velocity[:, 0] / (1.0 + 0.001 * power)

    facing = heading_vec[:, 0] * up_vec[:, 2]

    total_reward = 2.0 * efficiency + 0.2 * antiphase_reward + 0.5 * facing
    return total_reward.squeeze(), {
        'efficiency': 2.0 * efficiency,
        'antiphase': 0.2 * antiphase_reward,
        'facing': 0.5 * facing,
    }
