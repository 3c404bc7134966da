# environment: ant
# broken: a bracket is not closed
import torch

def compute_reward(velocity, up_proj, actions):
    forward = torch.clamp(velocity[:, 0], -1.0, 5.0
    upright = 0.1 * up_proj
    effort = -0.005 * (actions ** 2).sum(dim=-1)
    return forward + upright + effort, {"forward": forward, "upright": upright, "effort": effort}
