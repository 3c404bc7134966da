# environment: car
# broken: numpy and Python's own branches on one car, where there is a batch
import numpy as np

def compute_reward(speed, min_pos, collision):
    if collision:
        return -100.0, {"collision": -100.0}
    if 9.0 <= speed <= 10.5:
        speed_reward = 1.0
    else:
        speed_reward = float(np.exp(-abs(speed - 9.75)))
    position_reward = float(np.exp(-min_pos))
    return speed_reward + position_reward, {"speed": speed_reward, "position": position_reward}
