# environment: ant
# broken: reads a variable of the machine
import os
import torch

WEIGHT = float(os.environ.get("FORWARD_WEIGHT", "1.0"))

def compute_reward(velocity, up_proj):
    forward = WEIGHT * velocity[:, 0]
    upright = 0.1 * up_proj
    return forward + upright, {"forward": forward, "upright": upright}
