"""Adam (Kingma and Ba 2015) for stacked members, each with its own learning rate and step count."""

from __future__ import annotations

import torch
from torch import Tensor

_BETA_1 = 0.9
_BETA_2 = 0.999
_EPSILON = 1e-8


class StackedAdam:
    """Moments and step counts of K members' parameters."""

    def __init__(self, parameters: Tensor, gradients: Tensor) -> None:
        """Shape of each: (K, P)."""
        self._parameters = parameters
        self._gradients = gradients
        self._first = torch.zeros_like(parameters)
        self._second = torch.zeros_like(parameters)
        self._steps = torch.zeros(len(parameters), 1, dtype=torch.float64, device=parameters.device)

    def reset(self, member: int) -> None:
        """Set one member's moments and step count to zero."""
        for tensor in self.member_tensors().values():
            tensor[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        return {"first": self._first, "second": self._second, "steps": self._steps}

    def step(self, first: int, end: int, learning_rate: Tensor, gradient_scale: Tensor) -> None:
        """Update members `first` to `end` (exclusive). Shape of the factors: (end - first, 1)."""
        gradient = self._gradients[first:end].mul_(gradient_scale)
        tensors = (self._first, self._second, self._steps)
        mean, square, steps = (tensor[first:end] for tensor in tensors)
        steps += 1.0
        mean.lerp_(gradient, 1.0 - _BETA_1)
        square.mul_(_BETA_2).addcmul_(gradient, gradient, value=1.0 - _BETA_2)
        root_correction = (1.0 - _BETA_2**steps).rsqrt().float()
        step_size = (learning_rate / (1.0 - _BETA_1**steps)).float()
        # step_size * mean / (root_correction * √square + ε), numerator and denominator divided by
        # step_size
        denominator = square.sqrt().mul_(root_correction / step_size).add_(_EPSILON / step_size)
        self._parameters[first:end].addcdiv_(mean, denominator, value=-1.0)
