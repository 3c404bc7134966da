# environment: hand
from typing import Tuple, Dict
import torch
import torch.nn.functional as F

# The search showed three things: (1) dense orientation terms are needed; (2) grasping matters only
# while the object is not aligned; (3) large joint velocities destroy what was achieved.
def compute_reward(object_rot: torch.Tensor, goal_rot: torch.Tensor, object_pos: torch.Tensor,
                   fingertip_pos: torch.Tensor, shadow_hand_dof_vel: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    similarity = F.cosine_similarity(object_rot, goal_rot, dim=-1).abs()
    orientation = similarity ** 8

    # fingers within 4 cm of the object, softly counted
    gaps = torch.norm(fingertip_pos - object_pos[:, None, :], dim=2)
    near = torch.sigmoid((0.04 - gaps) / 0.01).sum(dim=1) / gaps.shape[1]
    contact = (1.0 - orientation) * near

    restless = F.softplus(shadow_hand_dof_vel.abs().mean(dim=-1) - 2.0)

    weights = [3.0, 0.5, -0.1]
    values = [orientation, contact, restless]
    total = sum([w * v for w, v in zip(weights, values)])
    return total, {"orientation": orientation, "contact": contact, "restless": restless}
