# environment: car
import torch

# mutated individual: bell-shaped terms for everything
bell = lambda x, centre, width: torch.exp(-(((x - centre) / width) ** 2))

def compute_reward(speed, min_pos, heading_error, distance_to_lead, collision):
    speed_r = bell(speed, 10.0, 3.5)
    lane_r = bell(min_pos, 0.0, 0.8)
    heading_r = bell(heading_error, 0.0, 0.15)
    lead_r = 1 - bell(distance_to_lead, 0.0, 6.0)

    reward = (speed_r + lane_r + heading_r + lead_r) / 4
    reward = torch.where(collision.bool(), torch.tensor(-5.0, device=reward.device), reward)
    return reward, {"speed": speed_r / 4, "lane": lane_r / 4, "heading": heading_r / 4, "lead": lead_r / 4}
