# environment: hand
# broken: rotations by scipy, which knows no batches of tensors
import torch
from scipy.spatial.transform import Rotation as R

def compute_reward(object_rot, goal_rot):
    relative = R.from_quat(object_rot.cpu().numpy()) * R.from_quat(goal_rot.cpu().numpy()).inv()
    angle = torch.tensor(relative.magnitude(), dtype=torch.float32, device=object_rot.device)
    reward = torch.exp(-angle)
    return reward, {"rotation": reward}
