# environment: hand
# broken: goes through rows, fingers and pairs of axes one by one, a thousand times slower than a batch
import torch

def compute_reward(object_pos, fingertip_pos, shadow_hand_dof_pos):
    total = torch.zeros(object_pos.shape[0])
    for row in range(object_pos.shape[0]):
        for first in range(20):
            for second in range(20):
                for third in range(20):
                    for finger in range(5):
                        gap = torch.norm(fingertip_pos[row, finger] - object_pos[row])
                        spread = shadow_hand_dof_pos[row, first] * shadow_hand_dof_pos[row, second] - shadow_hand_dof_pos[row, third]
                        total[row] += torch.exp(-gap * 20.0) - 1e-5 * spread.abs()
    return total, {"total": total}
