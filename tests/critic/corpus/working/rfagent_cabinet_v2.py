# environment: cabinet
# Version 2. Compared to v1 the gripper must come from the front with the right orientation:
# the dot product of its forward axis and the drawer's inward axis is a measure of that.
from typing import Tuple, Dict
import torch

@torch.jit.script
def compute_reward(franka_grasp_pos: torch.Tensor, drawer_grasp_pos: torch.Tensor, franka_grasp_rot: torch.Tensor, drawer_grasp_rot: torch.Tensor,
                   gripper_forward_axis: torch.Tensor, drawer_inward_axis: torch.Tensor, cabinet_dof_pos: torch.Tensor,
                   actions: torch.Tensor, action_penalty_scale: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    d = torch.norm(franka_grasp_pos - drawer_grasp_pos, p=2, dim=-1)
    dist_reward = 1.0 / (1.0 + 10.0 * d)

    axis1 = tf_vector(franka_grasp_rot, gripper_forward_axis)
    axis2 = tf_vector(drawer_grasp_rot, drawer_inward_axis)
    dot = torch.bmm(axis1.view(-1, 1, 3), axis2.view(-1, 3, 1)).squeeze(-1).squeeze(-1)
    rot_reward = 0.5 * torch.sign(dot) * dot ** 2

    open_reward = cabinet_dof_pos[:, 3] * (1.0 + dist_reward)
    action_penalty = torch.sum(actions ** 2, dim=-1) * action_penalty_scale

    total_reward = 2.0 * dist_reward + rot_reward + 7.5 * open_reward - action_penalty
    return total_reward, {"dist": 2.0 * dist_reward, "rot": rot_reward, "open": 7.5 * open_reward, "action": -action_penalty}
