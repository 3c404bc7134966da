# environment: car
# broken: the rank among the batch's cars takes the place of the own speed
import torch

def compute_reward(speed, min_pos, collision):
    rank = torch.argsort(torch.argsort(speed)).float() / speed.shape[0]
    lane = torch.exp(-min_pos)
    crash = -10.0 * collision
    return rank + lane + crash, {"rank": rank, "lane": lane, "crash": crash}
