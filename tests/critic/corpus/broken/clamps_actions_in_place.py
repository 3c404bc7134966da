# environment: car
# broken: clamps the actions in place
import torch

def compute_reward(actions, speed, min_pos):
    actions.clamp_(-0.5, 0.5)
    effort = -0.1 * actions.abs().sum(dim=-1)
    pace = torch.tanh(speed / 10.0)
    lane = -min_pos
    return effort + pace + lane, {"effort": effort, "pace": pace, "lane": lane}
