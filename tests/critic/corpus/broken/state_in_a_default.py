# environment: cart
# broken: remembers the last angle in a mutable default argument
import torch

def compute_reward(pole_angle, memory={}):
    last = memory.get("angle", pole_angle)
    memory["angle"] = pole_angle.clone()
    progress = last.abs() - pole_angle.abs() if last.shape == pole_angle.shape else torch.zeros_like(pole_angle)
    return progress - pole_angle.abs(), {"progress": progress, "upright": -pole_angle.abs()}
