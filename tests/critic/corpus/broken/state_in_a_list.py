# environment: ball_balance
# broken: keeps the distances of earlier calls in a list of the module
import torch

history = []

def compute_reward(ball_positions, ball_linvels):
    distance = ball_positions[:, :2].norm(dim=-1)
    history.append(distance.mean().item())
    improving = -distance
    if len(history) > 1:
        improving = history[-2] - distance
    slow = -0.1 * ball_linvels.norm(dim=-1)
    return improving + slow, {"improving": improving, "slow": slow}
