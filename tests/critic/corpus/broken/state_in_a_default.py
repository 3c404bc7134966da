# environment: quadcopter
# broken: remembers the last distance in a mutable default argument
import torch

def compute_reward(root_positions, target_root_positions, memory={}):
    distance = (target_root_positions - root_positions).norm(dim=-1)
    last = memory.get("distance", distance)
    progress = last - distance if last.shape == distance.shape else torch.zeros_like(distance)
    memory["distance"] = distance.clone()
    closeness = torch.exp(-distance)
    return progress + closeness, {"progress": progress, "closeness": closeness}
