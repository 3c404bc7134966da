# environment: anymal
import torch
from typing import Dict, Tuple

def compute_reward(base_lin_vel: torch.Tensor, base_ang_vel: torch.Tensor, commands: torch.Tensor, projected_gravity: torch.Tensor, dof_vel: torch.Tensor, torques: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Stage 1: stand level
    level = torch.clamp(-projected_gravity[:, 2], 0.0, 1.0)
    standing = level > 0.9

    # Stage 2: walk in the commanded direction
    command_speed = torch.norm(commands[:, :2], dim=-1)
    along = torch.sum(base_lin_vel[:, :2] * commands[:, :2], dim=-1) / (command_speed + 1e-5)
    walking = torch.where(command_speed > 0.05, torch.minimum(along, command_speed), -torch.norm(base_lin_vel[:, :2], dim=-1))

    # Stage 3: at the commanded yaw rate
    turning = torch.exp(-2.0 * torch.abs(commands[:, 2] - base_ang_vel[:, 2]))

    power = torch.sum(torch.abs(torques * dof_vel), dim=-1)
    total = level + standing * (walking + 0.5 * turning) - 1e-4 * power
    return total, {"level": level, "walking": standing * walking, "turning": 0.5 * standing * turning, "power": -1e-4 * power}
