# environment: anymal
# broken: a counter of calls makes a curriculum
import torch

step_count = 0

def compute_reward(base_lin_vel, commands, torques):
    global step_count
    step_count += 1
    curriculum = min(1.0, step_count / 1000.0)
    error = (commands[:, :2] - base_lin_vel[:, :2]).square().sum(dim=-1)
    tracking = torch.exp(-4.0 * error)
    effort = -curriculum * 1e-4 * torques.square().sum(dim=-1)
    return tracking + effort, {"tracking": tracking, "effort": effort}
