# environment: hand
# broken: the total is one number for the whole batch
import torch

def compute_reward(object_rot, goal_rot, object_linvel):
    similarity = torch.sum(object_rot * goal_rot)
    speed = torch.norm(object_linvel)
    return similarity.abs() - 0.1 * speed, {"similarity": similarity.abs(), "speed": -0.1 * speed}
