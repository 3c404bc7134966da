# environment: cart
@torch.jit.script
def compute_reward(dof_pos: torch.Tensor, dof_vel: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    cart_pos = dof_pos[:, 0]
    pole_angle = dof_pos[:, 1]
    cart_vel = dof_vel[:, 0]
    pole_vel = dof_vel[:, 1]

    angle_temp = 10.0
    angle_reward = torch.exp(-angle_temp * pole_angle ** 2)
    vel_penalty = 0.01 * torch.abs(cart_vel) + 0.005 * torch.abs(pole_vel)
    centre_penalty = 0.05 * torch.abs(cart_pos)

    # a lost pole or cart gives a fixed penalty
    lost = torch.logical_or(torch.abs(cart_pos) > 3.0, torch.abs(pole_angle) > 1.5707)
    total_reward = angle_reward - vel_penalty - centre_penalty
    total_reward = torch.where(lost, torch.full_like(total_reward, -2.0), total_reward)

    return total_reward, {"angle_reward": angle_reward, "vel_penalty": vel_penalty, "centre_penalty": centre_penalty}
