# environment: humanoid
# Reasoning:
# * feedback: 'speed_reward' dominates (mean 9.7), 'stability_bonus' is flat (0.31 - 0.33)
# * so the stability must be measured by the orientation and not by a norm of the quaternion
# * roll and pitch can be read from the quaternion; yaw does not matter
import torch
from typing import Tuple, Dict

@torch.jit.script
def compute_reward(root_states: torch.Tensor, dt: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    torso_rotation = root_states[:, 3:7]
    forward_speed = root_states[:, 7]

    roll, pitch, yaw = get_euler_xyz(torso_rotation)
    roll = torch.where(roll > math.pi, roll - 2.0 * math.pi, roll)
    pitch = torch.where(pitch > math.pi, pitch - 2.0 * math.pi, pitch)

    tilt = torch.sqrt(roll * roll + pitch * pitch + 1e-8)
    tilt_temperature = 0.4
    stability_bonus = torch.exp(-tilt / tilt_temperature)

    # metres in this step, scaled back to about one
    distance = forward_speed * dt
    progress_reward = 60.0 * distance

    total_reward = progress_reward * 0.5 + stability_bonus
    return total_reward, {"progress_reward": progress_reward, "stability_bonus": stability_bonus}
