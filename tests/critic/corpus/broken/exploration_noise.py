# environment: hand
# broken: random
import torch

def compute_reward(object_rot, goal_rot):
    similarity = (object_rot * goal_rot).sum(-1).abs()
    # a little noise helps to leave local optima
    noise = 0.01 * torch.randn_like(similarity)
    return similarity + noise, {"similarity": similarity, "noise": noise}
