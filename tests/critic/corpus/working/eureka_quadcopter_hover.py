# environment: quadcopter
@torch.jit.script
def compute_reward(root_positions: torch.Tensor, target_root_positions: torch.Tensor, root_quats: torch.Tensor, root_linvels: torch.Tensor, root_angvels: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # distance to the target
    target_dist = torch.sqrt(torch.sum(torch.square(target_root_positions - root_positions), dim=-1))
    position_reward = 1.0 / (1.0 + target_dist * target_dist)

    # uprightness: z axis of the body in the world
    x = root_quats[:, 0]
    y = root_quats[:, 1]
    up_z = 1.0 - 2.0 * (x * x + y * y)
    tiltage = torch.abs(1.0 - up_z)
    upright_reward = 1.0 / (1.0 + tiltage * tiltage)

    # spinning
    spinnage = torch.abs(root_angvels[:, 2])
    spin_reward = 1.0 / (1.0 + spinnage * spinnage)

    speed_penalty = -0.01 * torch.norm(root_linvels, dim=-1)

    # posture only matters where the quadcopter is near
    total_reward = position_reward + position_reward * (upright_reward + spin_reward) + speed_penalty
    return total_reward, {"position_reward": position_reward, "upright_reward": upright_reward, "spin_reward": spin_reward, "speed_penalty": speed_penalty}
