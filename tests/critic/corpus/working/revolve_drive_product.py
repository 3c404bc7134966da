# environment: car
import torch
from typing import Dict, Tuple

def my_reward(speed: torch.Tensor, min_pos: torch.Tensor, steering: torch.Tensor, prev_steering: torch.Tensor, collision: torch.Tensor, lane_half_width: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Fitness of the parent was limited by policies that stand still: a product of factors leaves
    # no credit for standing in the middle of the lane.
    def triangle(x: torch.Tensor, left: float, peak: float, right: float) -> torch.Tensor:
        rising = (x - left) / (peak - left)
        falling = (right - x) / (right - peak)
        return torch.clamp(torch.minimum(rising, falling), 0.0, 1.0)

    speed_factor = triangle(speed, 0.0, 9.5, 15.0)
    lane_factor = torch.clamp(1.0 - min_pos / lane_half_width, min=0.0) ** 0.5
    smooth_factor = torch.exp(-torch.abs(steering - prev_steering))
    alive_factor = 1.0 - collision

    total = speed_factor * lane_factor * smooth_factor * alive_factor
    return total, {"speed_factor": speed_factor, "lane_factor": lane_factor, "smooth_factor": smooth_factor, "alive_factor": alive_factor}
