# environment: pick
import torch

def compute_reward(cube_pos, previous_cube_pos, goal_pos, ee_pos, previous_ee_pos, dt):
    # speeds towards cube and goal, by differences
    reach_now = torch.norm(ee_pos - cube_pos, dim=-1)
    reach_before = torch.norm(previous_ee_pos - previous_cube_pos, dim=-1)
    goal_now = torch.norm(cube_pos - goal_pos, dim=-1)
    goal_before = torch.norm(previous_cube_pos - goal_pos, dim=-1)

    reach_speed = (reach_before - reach_now) / dt
    goal_speed = (goal_before - goal_now) / dt

    # the second stage starts at a distance of 5 cm
    second = (reach_now < 0.05).float()
    first_stage = (1 - second) * reach_speed
    second_stage = second * (1.0 + 2.0 * goal_speed)
    hold_bonus = 5.0 * (goal_now < 0.03)

    return first_stage + second_stage + hold_bonus, {"first_stage": first_stage, "second_stage": second_stage, "hold_bonus": hold_bonus}
