"""Running mean and variance of each member's observations and returns."""

from __future__ import annotations

import torch
from torch import Tensor

_CLIP = 10.0
_EPSILON = 1e-2
"""Added to a standard deviation: an observation that hardly moves is not blown up."""


class ObservationStatistics:
    """Mean and variance of all observations that a member has seen; renewed once per iteration."""

    def __init__(self, members: int, size: int, device: torch.device | str) -> None:
        self.mean = torch.zeros(members, size, device=device)
        self.variance = torch.ones(members, size, device=device)
        self._count = torch.zeros(members, 1, device=device)

    def reset(self, member: int) -> None:
        """Mean 0 and variance 1: the observations of the first iteration pass as they are."""
        self.mean[member] = 0.0
        self.variance[member] = 1.0
        self._count[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """All that it knows, a row a member; live."""
        return {"mean": self.mean, "variance": self.variance, "count": self._count}

    def update(self, observations: Tensor) -> None:
        """Take in an iteration's observations of the first members. Shape: (members, rows, size).

        Chan, Golub, LeVeque 1983: the statistics of two sets from those of each.
        """
        members, rows = observations.shape[0], observations.shape[1]
        mean, variance, count = self.mean[:members], self.variance[:members], self._count[:members]
        new_mean = observations.mean(dim=1)
        new_variance = (observations - new_mean.unsqueeze(1)).square().mean(dim=1)
        share = rows / (count + rows)
        difference = new_mean - mean
        mean += difference * share
        variance += (new_variance - variance) * share + difference.square() * share * (1.0 - share)
        # the variance 1 of before the first update weighs nothing: its share is 0
        count += rows

    def deviation(self) -> Tensor:
        """What a normalised observation is divided by. Shape: (K, size)."""
        return self.variance.sqrt() + _EPSILON


def with_ones(inputs: Tensor) -> Tensor:
    """The inputs of a stacked perceptron: with a last column of ones. Shape: (…, size) to (…, size
    + 1)."""
    return torch.nn.functional.pad(inputs, (0, 1), value=1.0)


def normalize(
    observations: Tensor, mean: Tensor, inverse_deviation: Tensor, out: Tensor | None = None
) -> Tensor:
    """Observations around 0 with a deviation of about 1, within ±10. Shapes that broadcast."""
    return torch.sub(observations, mean, out=out).mul_(inverse_deviation).clamp_(-_CLIP, _CLIP)


class ReturnStatistics:
    """Scale of each member's returns, in which its value network works, so that a reward's scale
    does not matter.

    The value head is corrected whenever the scale changes (PopArt, van Hasselt et al. 2016). Before
    the first iteration ends nothing is known and every value is 0.
    """

    _MEMORY = 10.0
    """Iterations that count; older returns come from policies that are no more."""

    def __init__(self, members: int, device: torch.device | str) -> None:
        self.mean = torch.zeros(members, 1, device=device)
        self.deviation = torch.zeros(members, 1, device=device)
        self._square = torch.zeros(members, 1, device=device)
        self._iterations = torch.zeros(members, 1, device=device)

    def reset(self, member: int) -> None:
        for tensor in self.member_tensors().values():
            tensor[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """All that it knows, a row a member; live."""
        return {
            "mean": self.mean,
            "deviation": self.deviation,
            "square": self._square,
            "iterations": self._iterations,
        }

    def update(self, returns: Tensor) -> tuple[Tensor, Tensor]:
        """Take in an iteration's returns, shape (members, rows); gives the scale and shift that
        correct a value head, (members, 1).

        After the first iteration they are 1 and 0: a value network that knows nothing has nothing
        to keep.
        """
        members = len(returns)
        mean, deviation, iterations = (
            self.mean[:members],
            self.deviation[:members],
            self._iterations[:members],
        )
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
