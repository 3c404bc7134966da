# environment: cart
# broken: clamps the actions in place
import torch

def compute_reward(actions, pole_angle):
    actions.clamp_(-0.5, 0.5)
    effort = -0.1 * actions.abs().sum(dim=-1)
    return effort - pole_angle.abs(), {"effort": effort, "upright": -pole_angle.abs()}
