# environment: ball_balance
@torch.jit.script
def compute_reward(ball_positions: torch.Tensor, ball_linvels: torch.Tensor, actions: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # distance of the ball to the centre of the tray, on the height of a ball that lies on it
    ball_radius = 0.1
    ball_dist = torch.sqrt(ball_positions[..., 0] * ball_positions[..., 0] +
                           (ball_positions[..., 2] - 0.7) * (ball_positions[..., 2] - 0.7) +
                           (ball_positions[..., 1]) * ball_positions[..., 1])
    ball_speed = torch.norm(ball_linvels, p=2, dim=-1)
    pos_reward = 1.0 / (1.0 + ball_dist / ball_radius)
    speed_reward = 1.0 / (1.0 + ball_speed)
    action_penalty = 0.01 * torch.sum(torch.abs(actions), dim=-1)
    reward = pos_reward * speed_reward - action_penalty
    reward_dict = {"pos_reward": pos_reward, "speed_reward": speed_reward, "action_penalty": -action_penalty}
    return reward, reward_dict
