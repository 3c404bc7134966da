# environment: cart
# broken: a method that reads self
import torch

def compute_reward(self, pole_angle):
    reward = torch.exp(-(self.reset_dist * pole_angle).abs())
    return reward, {"upright": reward}
