# environment: quadcopter
# broken: a method that reads self
import torch

def compute_reward(self, root_positions):
    distance = torch.norm(self.target_root_positions - root_positions, dim=-1)
    reward = 1.0 / (1.0 + distance ** 2)
    return reward, {"position": reward}
