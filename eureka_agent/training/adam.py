"""Adam (Kingma and Ba 2015) for stacked members: learning rate, bias correction and step count of
each one's own."""

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
        """Forget what is known of one member."""
        self._first[member] = 0.0
        self._second[member] = 0.0
        self._steps[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """All that it knows, a row a member; live."""
        return {"first": self._first, "second": self._second, "steps": self._steps}

    def step(self, first: int, end: int, learning_rate: Tensor, gradient_scale: Tensor) -> None:
        """One update of the members `first` to `end` (not included) with their gradients times
        `gradient_scale`.

        `learning_rate`, `gradient_scale`: shape (end - first, 1).
        """
        gradient = self._gradients[first:end].mul_(gradient_scale)
        mean, square, steps = (
            self._first[first:end],
            self._second[first:end],
            self._steps[first:end],
        )
        steps += 1.0
        mean.lerp_(gradient, 1.0 - _BETA_1)
        square.mul_(_BETA_2).addcmul_(gradient, gradient, value=1.0 - _BETA_2)
        root_correction = (1.0 - _BETA_2**steps).rsqrt().float()
        step_size = (learning_rate / (1.0 - _BETA_1**steps)).float()
        # step_size * mean / (root_correction * √square + ε), with numerator and denominator divided
        # by step_size
        denominator = square.sqrt().mul_(root_correction / step_size).add_(_EPSILON / step_size)
        self._parameters[first:end].addcdiv_(mean, denominator, value=-1.0)
