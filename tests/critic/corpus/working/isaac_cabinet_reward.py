# environment: cabinet
import torch
from torch import Tensor
from typing import Dict, Tuple

@torch.jit.script
def compute_franka_reward(
    actions, cabinet_dof_pos,
    franka_grasp_pos, drawer_grasp_pos, franka_grasp_rot, drawer_grasp_rot,
    franka_lfinger_pos, franka_rfinger_pos,
    gripper_forward_axis, drawer_inward_axis, gripper_up_axis, drawer_up_axis,
    dist_reward_scale, rot_reward_scale, around_handle_reward_scale, open_reward_scale,
    finger_dist_reward_scale, action_penalty_scale, distX_offset
):
    # type: (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float, float, float, float, float, float, float) -> Tuple[Tensor, Dict[str, Tensor]]

    # distance of hand and handle
    d = torch.norm(franka_grasp_pos - drawer_grasp_pos, p=2, dim=-1)
    dist_reward = 1.0 / (1.0 + d ** 2)
    dist_reward *= dist_reward
    dist_reward = torch.where(d <= 0.02, dist_reward * 2, dist_reward)

    # alignment of the axes
    axis1 = tf_vector(franka_grasp_rot, gripper_forward_axis)
    axis2 = tf_vector(drawer_grasp_rot, drawer_inward_axis)
    axis3 = tf_vector(franka_grasp_rot, gripper_up_axis)
    axis4 = tf_vector(drawer_grasp_rot, drawer_up_axis)
    dot1 = (axis1 * axis2).sum(dim=-1)
    dot2 = (axis3 * axis4).sum(dim=-1)
    rot_reward = 0.5 * (torch.sign(dot1) * dot1 ** 2 + torch.sign(dot2) * dot2 ** 2)

    # fingers on both sides of the handle
    around = (franka_lfinger_pos[:, 2] > drawer_grasp_pos[:, 2]) & (franka_rfinger_pos[:, 2] < drawer_grasp_pos[:, 2])
    around_handle_reward = torch.where(around, torch.zeros_like(rot_reward) + 0.5, torch.zeros_like(rot_reward))
    lfinger_dist = torch.abs(franka_lfinger_pos[:, 2] - drawer_grasp_pos[:, 2])
    rfinger_dist = torch.abs(franka_rfinger_pos[:, 2] - drawer_grasp_pos[:, 2])
    finger_dist_reward = torch.where(around, (0.04 - lfinger_dist) + (0.04 - rfinger_dist), torch.zeros_like(rot_reward))

    action_penalty = torch.sum(actions ** 2, dim=-1)
    open_reward = cabinet_dof_pos[:, 3] * around_handle_reward + cabinet_dof_pos[:, 3]

    rewards = dist_reward_scale * dist_reward + rot_reward_scale * rot_reward \
        + around_handle_reward_scale * around_handle_reward + open_reward_scale * open_reward \
        + finger_dist_reward_scale * finger_dist_reward - action_penalty_scale * action_penalty

    # bonus for opening, penalty for reaching behind the handle
    rewards = torch.where(cabinet_dof_pos[:, 3] > 0.01, rewards + 0.5, rewards)
    rewards = torch.where(cabinet_dof_pos[:, 3] > 0.2, rewards + around_handle_reward, rewards)
    rewards = torch.where(franka_lfinger_pos[:, 0] < drawer_grasp_pos[:, 0] - distX_offset, torch.ones_like(rewards) * -1, rewards)
    rewards = torch.where(franka_rfinger_pos[:, 0] < drawer_grasp_pos[:, 0] - distX_offset, torch.ones_like(rewards) * -1, rewards)

    return rewards, {"dist_reward": dist_reward, "rot_reward": rot_reward, "around_handle_reward": around_handle_reward,
                     "finger_dist_reward": finger_dist_reward, "open_reward": open_reward, "action_penalty": action_penalty}
