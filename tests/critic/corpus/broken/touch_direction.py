# environment: pick
# broken: normalises a contact force, which is 0 where nothing is touched
import torch

def compute_reward(ee_pos, cube_pos, left_finger_force, right_finger_force):
    reach = 1 - torch.tanh(10 * torch.norm(ee_pos - cube_pos, dim=-1))
    left = left_finger_force / torch.norm(left_finger_force, dim=-1, keepdim=True)
    right = right_finger_force / torch.norm(right_finger_force, dim=-1, keepdim=True)
    opposed = -(left * right).sum(dim=-1)
    return reach + opposed, {"reach": reach, "opposed": opposed}
