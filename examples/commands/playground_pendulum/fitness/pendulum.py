"""The metric that counts, of one step; the batch comes first."""

from torch import Tensor


def compute_fitness(upright: Tensor) -> Tensor:
    """1 for each step within 0.3 rad of upright."""
    return (upright > 0.955).float()
