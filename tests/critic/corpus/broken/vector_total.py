# environment: hand
# broken: the total has three entries in each row
import torch

def compute_reward(object_pos, goal_pos, actions):
    position = torch.exp(-10.0 * (object_pos - goal_pos) ** 2)
    effort = -0.0002 * actions.square().sum(dim=-1, keepdim=True)
    return position + effort, {"position": position, "effort": effort}
