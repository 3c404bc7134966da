# environment: humanoid
import torch
from torch import Tensor
from typing import Tuple, Dict

# Analysis of the parent: the components differ by two orders of magnitude. Every term is mapped
# to [0, 1] here, and the weights alone say what matters.

def _unit(x: Tensor, low: float, high: float) -> Tensor:
    return torch.clamp((x - low) / (high - low), 0.0, 1.0)

def compute_reward(velocity: Tensor, torso_position: Tensor, up_proj: Tensor, heading_proj: Tensor,
                   dof_force_tensor: Tensor, motor_efforts: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    terms = {
        "speed": (0.6, _unit(velocity[:, 0], 0.0, 6.0)),
        "height": (0.1, _unit(torso_position[:, 2], 1.0, 1.4)),
        "upright": (0.15, _unit(up_proj, 0.5, 1.0)),
        "heading": (0.1, _unit(heading_proj, 0.5, 1.0)),
        "effort": (0.05, 1.0 - _unit((dof_force_tensor.abs() / motor_efforts).mean(dim=-1), 0.0, 1.0)),
    }
    total = torch.zeros_like(up_proj)
    components = {}
    for name, (weight, term) in terms.items():
        total += weight * term
        components[f"{name}_reward"] = weight * term
    return total, components
