# environment: ant
@torch.jit.script
def compute_reward(root_states: torch.Tensor, targets: torch.Tensor, up_vec: torch.Tensor, dt: float) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Position and velocity of the torso
    torso_position = root_states[:, 0:3]
    velocity = root_states[:, 7:10]

    # Horizontal direction to the target
    to_target = targets - torso_position
    to_target[:, 2] = 0.0
    direction = to_target / torch.norm(to_target, p=2, dim=-1, keepdim=True)

    # Speed in that direction
    forward_speed = torch.sum(velocity * direction, dim=-1)
    speed_temperature = 0.3
    speed_reward = torch.exp(speed_temperature * torch.clamp(forward_speed, -5.0, 5.0)) - 1.0

    # Stay upright
    upright_temperature = 2.0
    upright_reward = torch.exp(upright_temperature * (up_vec[:, 2] - 1.0))

    total_reward = speed_reward + 0.3 * upright_reward

    reward_components = {
        "speed_reward": speed_reward,
        "upright_reward": upright_reward,
    }
    return total_reward, reward_components
