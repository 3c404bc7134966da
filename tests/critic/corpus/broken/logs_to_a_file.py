# environment: anymal
# broken: writes a log
import torch

def compute_reward(base_lin_vel, commands):
    error = (commands[:, :2] - base_lin_vel[:, :2]).norm(dim=-1)
    reward = torch.exp(-error)
    with open("/tmp/reward_log.txt", "a") as log:
        log.write(f"{reward.mean().item()}\n")
    return reward, {"tracking": reward}
