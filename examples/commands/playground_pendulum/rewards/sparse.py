"""The fitness as a reward, to compare with."""

from torch import Tensor


def compute_reward(upright: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """1 for each step upright."""
    up = (upright > 0.955).float()
    return up, {"up": up}
