# environment: humanoid
# broken: the exponential of the speed divided by the control step overflows at 1.5 m/s
import torch
from typing import Dict, Tuple

@torch.jit.script
def compute_reward(velocity: torch.Tensor, dt: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    speed = torch.norm(velocity, p=2, dim=-1)
    speed_per_step = speed / dt
    temp_speed = 1.0
    speed_reward = torch.exp(speed_per_step / temp_speed)
    return speed_reward, {"speed_reward": speed_reward}
