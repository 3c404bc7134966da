# environment: cabinet
@torch.jit.script
def compute_reward(franka_grasp_pos: torch.Tensor, drawer_grasp_pos: torch.Tensor, cabinet_dof_pos: torch.Tensor, cabinet_dof_vel: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Distance of the gripper to the handle
    handle_distance = torch.norm(franka_grasp_pos - drawer_grasp_pos, p=2, dim=-1)
    distance_temperature = 0.1
    distance_reward = torch.exp(-handle_distance / distance_temperature)

    # How far the drawer is open, and whether it is opening
    opening = cabinet_dof_pos[:, 3]
    opening_reward = 5.0 * opening
    opening_speed_reward = torch.clamp(cabinet_dof_vel[:, 3], min=0.0)

    # Bonus for a drawer that is open
    success_bonus = (opening > 0.39).float() * 10.0

    total_reward = distance_reward + opening_reward + 0.5 * opening_speed_reward + success_bonus
    reward_components = {
        "distance_reward": distance_reward,
        "opening_reward": opening_reward,
        "opening_speed_reward": opening_speed_reward,
        "success_bonus": success_bonus,
    }
    return total_reward, reward_components
