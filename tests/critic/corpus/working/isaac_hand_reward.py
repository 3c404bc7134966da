# environment: hand
import torch
from torch import Tensor
from typing import Dict, Tuple


@torch.jit.script
def compute_hand_reward(
    max_episode_length: float, object_pos, object_rot, goal_pos, goal_rot,
    dist_reward_scale: float, rot_reward_scale: float, rot_eps: float,
    actions, action_penalty_scale: float,
    success_tolerance: float, reach_goal_bonus: float, fall_dist: float,
    fall_penalty: float, progress_buf
) -> Tuple[Tensor, Dict[str, Tensor]]:
    # distance from the hand to the object
    goal_dist = torch.norm(object_pos - goal_pos, p=2, dim=-1)

    # orientation alignment for the cube in hand and the goal cube
    quat_diff = quat_mul(object_rot, quat_conjugate(goal_rot))
    rot_dist = 2.0 * torch.asin(torch.clamp(torch.norm(quat_diff[:, 0:3], p=2, dim=-1), max=1.0))

    dist_rew = goal_dist * dist_reward_scale
    rot_rew = 1.0 / (torch.abs(rot_dist) + rot_eps) * rot_reward_scale
    action_penalty = torch.sum(actions ** 2, dim=-1) * action_penalty_scale

    reward = dist_rew + rot_rew + action_penalty

    # success bonus and fall penalty
    reached = torch.abs(rot_dist) <= success_tolerance
    goal_bonus = torch.where(reached, torch.ones_like(reward) * reach_goal_bonus, torch.zeros_like(reward))
    fall_rew = torch.where(goal_dist >= fall_dist, torch.ones_like(reward) * fall_penalty, torch.zeros_like(reward))
    late_rew = torch.where(progress_buf >= max_episode_length - 1, 0.5 * torch.ones_like(reward) * fall_penalty, torch.zeros_like(reward))

    reward = reward + goal_bonus + fall_rew + late_rew
    return reward, {"dist_rew": dist_rew, "rot_rew": rot_rew, "action_penalty": action_penalty, "goal_bonus": goal_bonus, "fall_rew": fall_rew, "late_rew": late_rew}
