"""Running mean and variance of each member's observations and returns."""

from __future__ import annotations

import torch
from torch import Tensor

_CLIP = 10.0
_EPSILON = 1e-2
"""Added to a standard deviation, so that an almost constant observation is not amplified."""


class ObservationStatistics:
    """Mean and variance of all observations of each member; updated once per iteration."""

    def __init__(self, members: int, size: int, device: torch.device | str) -> None:
        self.mean = torch.zeros(members, size, device=device)
        self.variance = torch.ones(members, size, device=device)
        self._count = torch.zeros(members, 1, device=device)

    def reset(self, member: int) -> None:
        """Set mean 0 and variance 1: the first iteration's observations pass unchanged."""
        self.mean[member] = 0.0
        self.variance[member] = 1.0
        self._count[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        return {"mean": self.mean, "variance": self.variance, "count": self._count}

    def update(self, observations: Tensor) -> None:
        """Add an iteration, shape (members, rows, size), as in Chan, Golub, LeVeque 1983."""
        members, rows = observations.shape[0], observations.shape[1]
        mean, variance, count = self.mean[:members], self.variance[:members], self._count[:members]
        new_mean = observations.mean(dim=1)
        new_variance = (observations - new_mean.unsqueeze(1)).square().mean(dim=1)
        share = rows / (count + rows)
        difference = new_mean - mean
        mean += difference * share
        variance += (new_variance - variance) * share + difference.square() * share * (1.0 - share)
        # before the first update the count is 0, so the initial variance has no weight
        count += rows

    def deviation(self) -> Tensor:
        """Divisor of normalised observations. Shape: (K, size)."""
        return self.variance.sqrt() + _EPSILON


def with_ones(inputs: Tensor) -> Tensor:
    """Append a column of ones, for a stacked perceptron. Shape: (…, size) to (…, size + 1)."""
    return torch.nn.functional.pad(inputs, (0, 1), value=1.0)


def normalize(
    observations: Tensor, mean: Tensor, inverse_deviation: Tensor, out: Tensor | None = None
) -> Tensor:
    """Observations with mean 0 and deviation 1, clipped to ±10. Shapes that broadcast."""
    return torch.sub(observations, mean, out=out).mul_(inverse_deviation).clamp_(-_CLIP, _CLIP)


class ReturnStatistics:
    """Mean and deviation of each member's returns, by which the value head is scaled, and corrected
    at every change (PopArt, van Hasselt et al. 2016). Before the first update every value is 0."""

    _MEMORY = 10.0
    """Effective window in iterations; older returns are of outdated policies."""

    def __init__(self, members: int, device: torch.device | str) -> None:
        self.mean = torch.zeros(members, 1, device=device)
        self.deviation = torch.zeros(members, 1, device=device)
        self._square = torch.zeros(members, 1, device=device)
        self._iterations = torch.zeros(members, 1, device=device)

    def reset(self, member: int) -> None:
        for tensor in self.member_tensors().values():
            tensor[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        return {
            "mean": self.mean,
            "deviation": self.deviation,
            "square": self._square,
            "iterations": self._iterations,
        }

    def update(self, returns: Tensor) -> tuple[Tensor, Tensor]:
        """Add returns, shape (members, rows); return a value head's scale and shift, shape
        (members, 1): 1 and 0 at first, as an untrained network has nothing to keep."""
        members = len(returns)
        tensors = (self.mean, self.deviation, self._iterations)
        mean, deviation, iterations = (tensor[:members] for tensor in tensors)
        old_mean, old_deviation, known = mean.clone(), deviation.clone(), iterations > 0
        iterations.add_(1.0).clamp_(max=self._MEMORY)
        share = 1.0 / iterations
        new_mean = returns.mean(dim=1, keepdim=True)
        new_variance = (returns - new_mean).square().mean(dim=1, keepdim=True)
        difference = new_mean - mean
        mean += difference * share
        variance = self._square[:members]
        variance += (new_variance - variance) * share + difference.square() * share * (1.0 - share)
        deviation.copy_(variance.sqrt().clamp_(min=1e-8))
        scale = torch.where(known, old_deviation / deviation, 1.0)
        shift = torch.where(known, (old_mean - mean) / deviation, 0.0)
        return scale, shift
