# environment: ant
# broken: potentials are minus some ten thousands, and e to the hundredth of that overflows everywhere
import torch

def compute_reward(potentials, up_proj):
    potential_reward = torch.exp(-potentials / 100.0)
    up_reward = 0.1 * up_proj
    return potential_reward + up_reward, {"potential": potential_reward, "up": up_reward}
