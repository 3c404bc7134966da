"""The fitness as a reward, to compare with."""

from torch import Tensor


def compute_reward(cube_height: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Height in m of the cube above where it rests, up to 0.1."""
    height = (cube_height - 0.02).clamp(0.0, 0.1)
    return height, {"height": height}
