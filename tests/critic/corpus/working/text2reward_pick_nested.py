# environment: pick
import torch
from torch import Tensor
from typing import Dict, Tuple

def compute_reward(ee_pos: Tensor, cube_pos: Tensor, goal_pos: Tensor, is_grasped: Tensor, qpos: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    def tolerance(value: Tensor, bound: float, margin: float) -> Tensor:
        # 1 within the bound, falling to 0.1 at the margin's end
        excess = torch.clamp(value - bound, min=0.0) / margin
        return torch.exp(-2.303 * excess ** 2)

    def hamacher(a: Tensor, b: Tensor) -> Tensor:
        denominator = a + b - a * b
        return torch.where(denominator > 0, a * b / denominator.clamp(min=1e-8), torch.zeros_like(a))

    in_reach = tolerance(torch.norm(ee_pos - cube_pos, dim=1), 0.02, 0.2)
    in_place = tolerance(torch.norm(cube_pos - goal_pos, dim=1), 0.02, 0.4)
    caged = hamacher(in_reach, torch.clamp(is_grasped + 0.2, max=1.0))
    rest_pose = -0.01 * torch.sum(qpos[:, :7] ** 2, dim=1)

    reward = 2.0 * hamacher(caged, in_place) + caged + rest_pose
    components = {"in_reach": in_reach, "in_place": in_place, "caged": caged, "rest_pose": rest_pose}
    return reward, components
