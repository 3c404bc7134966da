# environment: hand
@torch.jit.script
def compute_reward(object_rot: torch.Tensor, goal_rot: torch.Tensor, object_angvel: torch.Tensor, object_pos: torch.Tensor, fingertip_pos: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    # Angle between the two orientations
    quat_diff = quat_mul(object_rot, quat_conjugate(goal_rot))
    rot_dist = 2.0 * torch.asin(torch.clamp(torch.norm(quat_diff[:, 0:3], p=2, dim=-1), max=1.0))

    rotation_temp = 1.5
    rotation_reward = torch.exp(-rotation_temp * rot_dist)

    # Keep the fingertips close to the object
    finger_distance = torch.norm(fingertip_pos - object_pos.unsqueeze(1), p=2, dim=-1)
    mean_finger_distance = torch.mean(finger_distance, dim=-1)
    finger_temp = 20.0
    finger_reward = torch.exp(-finger_temp * mean_finger_distance)

    # Do not spin wildly
    angvel_norm = torch.norm(object_angvel, p=2, dim=-1)
    angvel_penalty = -0.05 * torch.clamp(angvel_norm - 4.0, min=0.0)

    total_reward = 2.0 * rotation_reward + 0.5 * finger_reward + angvel_penalty

    return total_reward, {
        "rotation_reward": rotation_reward,
        "finger_reward": finger_reward,
        "angvel_penalty": angvel_penalty,
    }
