# environment: cart
# broken: goes through rows and pairs of steps one by one, a thousand times slower than a batch
import torch

def compute_reward(pole_angle):
    total = torch.zeros(pole_angle.shape[0])
    for row in range(pole_angle.shape[0]):
        for first in range(200):
            for second in range(200):
                total[row] += torch.exp(-pole_angle[row].abs() * first) - 1e-5 * second
    return total, {"total": total}
