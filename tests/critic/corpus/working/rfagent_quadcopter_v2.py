# environment: quadcopter
# Reflection on v1: 'fine' never leaves 0.02, its temperature is too small for the spread of the
# targets. Temperatures are collected at the top now, one per component, to be tuned one by one.
import torch

distance_temperature = 0.6
velocity_temperature = 1.5
tilt_temperature = 0.3

def compute_reward(root_states, target_root_positions, thrusts):
    pos = root_states[..., 0:3]
    quat = root_states[..., 3:7]
    vel = root_states[..., 7:10]
    distance = (target_root_positions - pos).norm(dim=-1)
    distance_reward = torch.exp(-distance / distance_temperature)

    speed = vel.norm(dim=-1)
    desired_speed = torch.clamp(1.5 * distance, max=1.5)
    velocity_reward = torch.exp(-torch.abs(speed - desired_speed) / velocity_temperature)

    tilt = 2.0 * torch.atan2(torch.norm(quat[..., 0:2], dim=-1), torch.norm(quat[..., 2:4], dim=-1))
    tilt_reward = torch.exp(-tilt / tilt_temperature)

    thrust_balance = -0.02 * thrusts.std(dim=-1)

    reward = 1.0 * distance_reward + 0.4 * velocity_reward + 0.2 * tilt_reward + thrust_balance
    reward_components = {}
    reward_components["distance_reward"] = distance_reward
    reward_components["velocity_reward"] = velocity_reward
    reward_components["tilt_reward"] = tilt_reward
    reward_components["thrust_balance"] = thrust_balance
    return reward, reward_components
