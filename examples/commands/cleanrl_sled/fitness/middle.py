"""The metric that counts, of one step; the batch comes first."""

from torch import Tensor


def compute_fitness(position: Tensor) -> Tensor:
    """1 for each step within 0.3 m of the middle."""
    return (position.abs() < 0.3).float()
