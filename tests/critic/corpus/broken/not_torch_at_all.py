# environment: cart
# broken: numpy and Python's own branches on one cart, where there is a batch
import numpy as np

def compute_reward(pole_angle, cart_pos):
    if abs(cart_pos) > 3.0:
        return -100.0, {"off_the_rail": -100.0}
    return float(np.exp(-abs(pole_angle))), {"upright": float(np.exp(-abs(pole_angle)))}
