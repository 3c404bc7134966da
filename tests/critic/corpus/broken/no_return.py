# environment: cart
# broken: nothing is returned
import torch

def compute_reward(pole_angle, pole_vel, cart_pos):
    upright = torch.cos(pole_angle)
    still = -0.01 * pole_vel.abs()
    centred = -0.05 * cart_pos.abs()
    reward = upright + still + centred
    components = {"upright": upright, "still": still, "centred": centred}
