# environment: car
# broken: reads a variable that is for the fitness alone
import torch

def compute_reward(speed, true_score, collision):
    pace = torch.tanh(speed / 10.0)
    crash = -10.0 * collision
    return pace + true_score + crash, {"pace": pace, "score": true_score, "crash": crash}
