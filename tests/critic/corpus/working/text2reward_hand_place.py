# environment: hand
import torch
from typing import Dict, Tuple

def compute_reward(object_pos, goal_pos, fingertip_pos, vec_sensor_tensor, object_rot, goal_rot):
    num_fingers = 5
    # Stage 1: fingertips to the cube
    reach = torch.zeros_like(object_pos[:, 0])
    for i in range(num_fingers):
        reach += 1 - torch.tanh(10 * torch.norm(fingertip_pos[:, i] - object_pos, dim=-1))
    reach = reach / num_fingers

    # Stage 2: touch it, measured by the force sensors
    forces = vec_sensor_tensor.view(-1, num_fingers, 6)[:, :, 0:3]
    touching = (torch.norm(forces, dim=-1) > 0.1).float()
    touch = touching.mean(dim=-1)

    # Stage 3: turn it, when at least two fingers touch
    similarity = torch.abs(torch.sum(object_rot * goal_rot, dim=-1))
    secured = touching.sum(dim=-1) >= 2
    turn = torch.where(secured, similarity ** 2, torch.zeros_like(similarity))

    # Stage 4: keep it in place
    keep = torch.exp(-30 * torch.norm(object_pos - goal_pos, dim=-1))

    reward = 0.3 * reach + 0.3 * touch + 2.0 * turn + 0.4 * keep
    return reward, {"reach": 0.3 * reach, "touch": 0.3 * touch, "turn": 2.0 * turn, "keep": 0.4 * keep}
