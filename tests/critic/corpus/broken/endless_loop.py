# environment: ball_balance
# broken: waits for a temperature that never gets small enough
import torch

def compute_reward(ball_positions):
    distance = ball_positions[:, :2].norm(dim=-1)
    temperature = 1.0
    while True:
        reward = torch.exp(-distance / temperature)
        if float(reward.min()) < -1.0:
            break
        temperature = max(0.5 * temperature, 0.01)
    return reward, {"centre": reward}
