# environment: car
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(distance_to_lead: torch.Tensor, relative_speed: torch.Tensor, speed: torch.Tensor, safe_distance: float, max_speed: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Time to collision; infinite where the gap does not close
    closing_speed = torch.clamp(-relative_speed, min=0.0)
    time_to_collision = distance_to_lead / (closing_speed + 1e-3)
    ttc_reward = -torch.exp(-time_to_collision / 2.0)

    # Too near and too far are both bad
    distance_error = torch.abs(distance_to_lead - 2.0 * safe_distance)
    distance_reward = torch.exp(-distance_error / safe_distance)

    # Speed, normalised
    speed_reward = torch.clamp(speed / max_speed, 0.0, 1.0)

    total_reward = 2.0 * ttc_reward + distance_reward + speed_reward
    return total_reward, {"ttc_reward": 2.0 * ttc_reward, "distance_reward": distance_reward, "speed_reward": speed_reward}
