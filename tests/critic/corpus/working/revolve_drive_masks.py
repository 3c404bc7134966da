# environment: car
import torch

def compute_reward(speed, speed_limit, collision, on_road, traffic_light, distance_to_lead):
    """Driving reward, generation 3 (crossover of individuals 12 and 31)."""
    reward = torch.zeros(speed.shape[0], device=speed.device)

    # speed term: grows up to the limit, falls beyond it
    ratio = speed / speed_limit
    under = ratio <= 1.0
    reward[under] = ratio[under]
    reward[~under] = 2.0 - 1.5 * ratio[~under]
    speed_term = reward.clone()

    # a red light requires standing still
    red = traffic_light > 1.5
    red_light_term = torch.where(red, -2.0 * (speed > 0.5).float(), torch.zeros_like(speed))
    reward += red_light_term

    # keep a distance of two seconds
    time_gap = distance_to_lead / torch.clamp(speed, min=1.0)
    gap_term = -torch.clamp(2.0 - time_gap, min=0.0)
    reward += 0.5 * gap_term

    # safety first
    unsafe = torch.logical_or(collision > 0.5, on_road < 0.5)
    reward[unsafe] = -10.0

    return reward, {"speed": speed_term, "red_light": red_light_term, "gap": 0.5 * gap_term, "unsafe": unsafe}
