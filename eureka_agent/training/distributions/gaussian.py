"""Continuous actions: independent Gaussians, which the environment clips."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.distributions.interface import ActionDistribution, Likelihood

_SATURATED = 0.99


@dataclass(frozen=True)
class Gaussian(ActionDistribution):
    """Independent Gaussians, one deviation for all states; the environment clips to [-1, 1]."""

    size: int
    """Entries of an action."""
    parameter: ClassVar[str] = "log_std"

    def __str__(self) -> str:
        return f"{self.size} action{'' if self.size == 1 else 's'}"

    @property
    def num_actions(self) -> int:
        return self.size

    @property
    def num_outputs(self) -> int:
        return self.size

    @property
    def num_parameters(self) -> int:
        return self.size

    @property
    def constant(self) -> float:
        return -0.5 * math.log(2.0 * math.pi) * self.size

    def initial_parameter(self, settings: TrainingSettings) -> float:
        return math.log(settings.initial_action_std)

    def draw_noise(self, generator: torch.Generator, out: Tensor) -> None:
        torch.randn(out.shape, generator=generator, out=out)

    def scaled(self, noise: Tensor, parameters: Tensor) -> Tensor:
        shape = (len(parameters), *([1] * (noise.dim() - 2)), self.size)
        return noise * parameters.exp().view(shape)

    def sample(self, outputs: Tensor, noise: Tensor, out: Tensor | None = None) -> Tensor:
        return torch.add(outputs, noise, out=out)

    def mode(self, outputs: Tensor, spread: Tensor) -> Tensor:
        """Mean of the clipped actions, which training applied. With the clipped mean, where noise
        is wide, a hovering craft would sink or rise."""
        return clipped_gaussian_mean(outputs, spread)

    def spread(self, parameters: Tensor) -> Tensor:
        """Standard deviations."""
        return parameters.exp()

    def log_probability(
        self, outputs: Tensor, noise: Tensor, actions: Tensor, parameters: Tensor
    ) -> Tensor:
        constant = 0.5 * math.log(2.0 * math.pi)
        # the noise is the deviation in standard deviations, without further rounding
        return -(0.5 * noise.square() + (parameters.unsqueeze(1) + constant)).sum(dim=-1)

    def entropy(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        constant = 0.5 * math.log(2.0 * math.pi * math.e)
        return parameters.sum(dim=1) + constant * self.size

    def likelihood(
        self, outputs: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor
    ) -> Likelihood:
        return _GaussianLikelihood(outputs, parameters, actions, shift)

    def std(self, parameters: Tensor) -> Tensor | None:
        return parameters.exp().mean(dim=1)

    def saturation(self, actions: Tensor) -> Tensor | None:
        return (actions.abs() > _SATURATED).float().flatten(1).mean(dim=1)


class _GaussianLikelihood(Likelihood):
    """Gradient of the log-probability: (a - m) / s² by the mean, ((a - m) / s)² - 1 by log s."""

    def __init__(self, means: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor) -> None:
        self._means, self._parameters = means, parameters
        log_std = parameters.unsqueeze(2)
        self._inverse_std = (-log_std).exp()
        self._deviation = (actions - means).mul_(self._inverse_std)
        squares = self._deviation.square().sum(dim=1, keepdim=True)
        self.log_ratio = torch.sub(shift, squares, alpha=0.5).sub_(log_std.sum(dim=1, keepdim=True))

    def write_gradients(
        self,
        by_log_probability: Tensor,
        entropy_coefficient: float,
        by_outputs: Tensor,
        by_parameters: Tensor,
    ) -> None:
        by_mean = by_log_probability * self._deviation
        torch.mul(by_mean, self._inverse_std, out=by_outputs)
        by_log_std = by_mean.mul_(self._deviation).sub_(by_log_probability).sum(dim=2)
        torch.sub(by_log_std, entropy_coefficient, out=by_parameters)

    def kl(self, old_outputs: Tensor, old_parameters: Tensor) -> Tensor:
        log_std, old_log_std = self._parameters, old_parameters
        ratio = 0.5 * (2.0 * (old_log_std - log_std)).exp()
        spread = (log_std - old_log_std + ratio - 0.5).sum(dim=-1)
        moved = (old_outputs - self._means).mul_(self._inverse_std).square_().sum(dim=(1, 2))
        return spread + 0.5 * moved / self._means.shape[2]


def clipped_gaussian_mean(mean: Tensor, std: Tensor) -> Tensor:
    """Expectation of a Gaussian variable clipped to [-1, 1]. Shapes that broadcast."""
    low, high = (-1.0 - mean) / std, (1.0 - mean) / std
    below, above = torch.special.ndtr(low), torch.special.ndtr(-high)
    density = torch.exp(-0.5 * low.square()) - torch.exp(-0.5 * high.square())
    density = density / math.sqrt(2.0 * math.pi)
    return (above - below + mean * (1.0 - below - above) + std * density).clamp(-1.0, 1.0)
