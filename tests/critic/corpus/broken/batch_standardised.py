# environment: ant
# broken: standardised by the batch's mean and standard deviation
import torch

def compute_reward(velocity, up_proj, actions):
    speed = velocity[:, 0]
    speed_reward = (speed - speed.mean()) / (speed.std() + 1e-6)
    up_reward = 0.1 * up_proj
    action_penalty = -0.005 * (actions ** 2).sum(-1)
    return speed_reward + up_reward + action_penalty, {"speed": speed_reward, "up": up_reward, "action": action_penalty}
