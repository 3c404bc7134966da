"""The fitness as a reward, to compare with."""

from torch import Tensor


def compute_reward(tip_position: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The same number as the task's fitness."""
    is_up = 0.05 * (tip_position[:, 0] > 0.95).float()
    return is_up, {"is_up": is_up}
