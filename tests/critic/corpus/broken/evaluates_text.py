# environment: pick
# broken: the terms are text that is evaluated
import torch

TERMS = {"reach": "-(ee_pos - cube_pos).norm(dim=-1)", "place": "-(cube_pos - goal_pos).norm(dim=-1)"}

def compute_reward(ee_pos, cube_pos, goal_pos):
    values = {name: eval(text) for name, text in TERMS.items()}
    return sum(values.values()), values
