"""The fitness as a reward, to compare with."""

from torch import Tensor


def compute_reward(
    forward_velocity: Tensor, torso_height: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Speed forward in m/s, up to 1, while the torso is above 1 m."""
    forward = forward_velocity.clamp(0.0, 1.0) * (torso_height > 1.0)
    return forward, {"forward": forward}
