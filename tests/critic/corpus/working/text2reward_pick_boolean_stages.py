# environment: pick
import torch

def staged_reward(ee_pos, cube_pos, goal_pos, is_grasped, left_finger_force, right_finger_force, success_tolerance: float = 0.025):
    """Each stage adds one to the reward; within a stage the reward rises smoothly."""
    d_reach = (ee_pos - cube_pos).norm(dim=-1)
    d_goal = (cube_pos - goal_pos).norm(dim=-1)

    stage_1 = d_reach < 0.04
    stage_2 = stage_1 & is_grasped.bool()
    stage_3 = stage_2 & (d_goal < success_tolerance)

    # force of both fingers, with saturation
    squeeze = torch.minimum(left_finger_force.norm(dim=-1), right_finger_force.norm(dim=-1))
    squeeze = torch.clamp(squeeze / 5.0, max=1.0)

    within = torch.where(stage_2, 1 - torch.tanh(3 * d_goal), torch.where(stage_1, squeeze, 1 - torch.tanh(10 * d_reach)))
    count = stage_1.int() + stage_2.int() + stage_3.int()
    total = count + within
    return total, {"stage_1": stage_1, "stage_2": stage_2, "stage_3": stage_3, "within": within}
