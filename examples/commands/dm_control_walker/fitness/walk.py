"""The metric that counts, of one step; the batch comes first."""

from torch import Tensor


def compute_fitness(forward_velocity: Tensor, torso_height: Tensor) -> Tensor:
    """Speed forward in m/s, up to 1, while the torso is above 1 m."""
    return forward_velocity.clamp(0.0, 1.0) * (torso_height > 1.0)
