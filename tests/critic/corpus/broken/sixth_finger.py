# environment: hand
# broken: reads a sixth fingertip
import torch

def compute_reward(object_pos, fingertip_pos):
    gaps = [torch.norm(fingertip_pos[:, i] - object_pos, dim=-1) for i in range(6)]
    closeness = -sum(gaps) / 6
    return closeness, {"closeness": closeness}
