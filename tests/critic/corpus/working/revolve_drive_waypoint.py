# environment: car
import torch
import math

def compute_reward(position, waypoint_position, previous_position, speed, lateral_acceleration, acceleration, collision):
    # progress to the waypoint since the last step
    distance = torch.linalg.norm(waypoint_position - position, dim=-1)
    previous_distance = torch.linalg.norm(waypoint_position - previous_position, dim=-1)
    progress = previous_distance - distance

    # bearing of the waypoint against the direction of travel
    step = position - previous_position
    bearing = torch.atan2(waypoint_position[:, 1] - position[:, 1], waypoint_position[:, 0] - position[:, 0])
    course = torch.atan2(step[:, 1], step[:, 0])
    difference = torch.remainder(bearing - course + math.pi, 2 * math.pi) - math.pi
    bearing_reward = 0.1 * torch.cos(difference)

    # passengers' comfort
    comfort = -0.02 * torch.relu(lateral_acceleration.abs() - 2.0) - 0.02 * torch.relu(acceleration.abs() - 3.0)

    crash = -50.0 * collision
    reward = progress + bearing_reward + comfort + crash
    return reward, {"progress": progress, "bearing": bearing_reward, "comfort": comfort, "crash": crash}
