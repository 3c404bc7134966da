"""Distributions of actions: the only place that tells a Gaussian from a categorical one. The first
dimension is the member; no operation mixes members. Only operations whose rounding in torch does
not depend on a number's place in a tensor are used. Both have the same methods, which the Gaussian
explains: network outputs and parameters that no state changes give a distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.vec_task import VecTask

_SATURATED = 0.99
_CATEGORICAL = "categorical"
"""Name in a policy file's metadata."""


@dataclass(frozen=True)
class Gaussian:
    """Independent Gaussians, one deviation for all states; the environment clips to [-1, 1]."""

    size: int
    parameter: ClassVar[str] = "log_std"
    """Name of the parameters in a policy's file; empty if there are none."""
    answer_names: ClassVar[tuple[str, ...]] = ("action",)
    """Names of the tensors of `answer`."""

    def __str__(self) -> str:
        return f"{self.size} action{'' if self.size == 1 else 's'}"

    @property
    def num_actions(self) -> int:
        """Entries of an action."""
        return self.size

    @property
    def num_outputs(self) -> int:
        """Outputs of the network, and random numbers of an action."""
        return self.size

    @property
    def num_parameters(self) -> int:
        """Parameters that no state changes."""
        return self.size

    @property
    def constant(self) -> float:
        """Constant part of the log-probability."""
        return -0.5 * math.log(2.0 * math.pi) * self.size

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of a policy's file, for `distribution_of_file`."""
        return {}

    def initial_parameter(self, settings: TrainingSettings) -> float:
        """Initial value of every parameter."""
        return math.log(settings.initial_action_std)

    def draw_noise(self, generator: torch.Generator, out: Tensor) -> None:
        """Fill `out`, shape (…, num_outputs), with one member's noise."""
        torch.randn(out.shape, generator=generator, out=out)

    def scaled(self, noise: Tensor, parameters: Tensor) -> Tensor:
        """Noise for `sample`. Shapes: (members, …, num_outputs), (members, num_parameters)."""
        shape = (len(parameters), *([1] * (noise.dim() - 2)), self.size)
        return noise * parameters.exp().view(shape)

    def sample(self, outputs: Tensor, noise: Tensor, out: Tensor | None = None) -> Tensor:
        """Actions, shape (…, num_actions), from outputs and scaled noise; NaN for NaN outputs."""
        return torch.add(outputs, noise, out=out)

    def mode(self, outputs: Tensor, spread: Tensor) -> Tensor:
        """Actions without noise, shape (…, num_actions): the mean of the clipped actions, which
        training applied. With the clipped mean, where noise is wide, a hovering craft would sink or
        rise. `spread`: of `spread`."""
        return clipped_gaussian_mean(outputs, spread)

    def spread(self, parameters: Tensor) -> Tensor:
        """Parameters for `mode`, of the same shape: standard deviations."""
        return parameters.exp()

    def log_probability(
        self, outputs: Tensor, noise: Tensor, actions: Tensor, parameters: Tensor
    ) -> Tensor:
        """Log-probability (density), shape (members, rows), of actions (members, rows, …)."""
        constant = 0.5 * math.log(2.0 * math.pi)
        # the noise is the deviation in standard deviations, without further rounding
        return -(0.5 * noise.square() + (parameters.unsqueeze(1) + constant)).sum(dim=-1)

    def entropy(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        """Entropy in nats, mean over the rows of `outputs`. Shape: (members,)."""
        constant = 0.5 * math.log(2.0 * math.pi * math.e)
        return parameters.sum(dim=1) + constant * self.size

    def likelihood(
        self, outputs: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor
    ) -> _GaussianLikelihood:
        """Likelihood of a minibatch. `shift`: `constant` minus the log-probability under the policy
        that acted, shape (members, 1, rows)."""
        return _GaussianLikelihood(outputs, parameters, actions, shift)

    def std(self, parameters: Tensor) -> Tensor | None:
        """Mean standard deviation of an action's entries, shape (members,); None for choices."""
        return parameters.exp().mean(dim=1)

    def saturation(self, actions: Tensor) -> Tensor | None:
        """Share of entries at their bounds, shape (members,); None for choices."""
        return (actions.abs() > _SATURATED).float().flatten(1).mean(dim=1)

    def answer(self, outputs: Tensor, spread: Tensor) -> Tensor | tuple[Tensor, ...]:
        """An exported policy's result: the action without noise, and further tensors."""
        return self.mode(outputs, spread)


class _GaussianLikelihood:
    """A minibatch's actions under the current policy, shape (members, …, rows). The gradient of the
    log-probability is (a - m) / s² by the mean and ((a - m) / s)² - 1 by log s."""

    def __init__(self, means: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor) -> None:
        self._means, self._parameters = means, parameters
        log_std = parameters.unsqueeze(2)
        self._inverse_std = (-log_std).exp()
        self._deviation = (actions - means).mul_(self._inverse_std)
        squares = self._deviation.square().sum(dim=1, keepdim=True)
        self.log_ratio = torch.sub(shift, squares, alpha=0.5).sub_(log_std.sum(dim=1, keepdim=True))
        """Log of the probability ratio to the policy that acted. Shape: (members, 1, rows)."""

    def write_gradients(
        self,
        by_log_probability: Tensor,
        entropy_coefficient: float,
        by_outputs: Tensor,
        by_parameters: Tensor,
    ) -> None:
        """Write gradients with entropy bonus: `by_outputs`, (members, num_outputs, rows),
        `by_parameters`, (members, num_parameters). `by_log_probability`: (members, 1, rows)."""
        by_mean = by_log_probability * self._deviation
        torch.mul(by_mean, self._inverse_std, out=by_outputs)
        by_log_std = by_mean.mul_(self._deviation).sub_(by_log_probability).sum(dim=2)
        torch.sub(by_log_std, entropy_coefficient, out=by_parameters)

    def kl(self, old_outputs: Tensor, old_parameters: Tensor) -> Tensor:
        """Mean KL divergence, (members,). `old_outputs`: shape (members, num_outputs, rows)."""
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


@dataclass(frozen=True)
class Categorical:
    """Independent categorical distributions over indices; the network gives a logit per choice."""

    choices: tuple[int, ...]
    """Number of choices by entry of the action."""
    parameter: ClassVar[str] = ""
    answer_names: ClassVar[tuple[str, ...]] = ("action", "logits")
    num_parameters: ClassVar[int] = 0
    constant: ClassVar[float] = 0.0

    def __str__(self) -> str:
        numbers = " and ".join(map(str, self.choices))
        return f"{'a choice' if len(self.choices) == 1 else 'choices'} of {numbers}"

    @property
    def num_actions(self) -> int:
        return len(self.choices)

    @property
    def num_outputs(self) -> int:
        return sum(self.choices)

    @property
    def metadata(self) -> dict[str, str]:
        return {"distribution": _CATEGORICAL, "choices": ",".join(map(str, self.choices))}

    def initial_parameter(self, settings: TrainingSettings) -> float:
        return 0.0

    def draw_noise(self, generator: torch.Generator, out: Tensor) -> None:
        """Fill with Gumbel noise: the largest of logits plus noise is a sample (Gumbel 1954)."""
        torch.rand(out.shape, generator=generator, out=out)
        out.clamp_(min=torch.finfo(out.dtype).tiny).log_().neg_().log_().neg_()

    def scaled(self, noise: Tensor, parameters: Tensor) -> Tensor:
        return noise

    def sample(self, outputs: Tensor, noise: Tensor, out: Tensor | None = None) -> Tensor:
        taken = self._largest(outputs + noise)
        return taken if out is None else out.copy_(taken)

    def mode(self, outputs: Tensor, spread: Tensor) -> Tensor:
        """The likeliest choices; the first of equally likely ones."""
        return self._largest(outputs)

    def spread(self, parameters: Tensor) -> Tensor:
        return parameters

    def log_probability(
        self, outputs: Tensor, noise: Tensor, actions: Tensor, parameters: Tensor
    ) -> Tensor:
        logs = self._logs(outputs.transpose(1, 2).contiguous())
        return (logs * self._taken(actions.transpose(1, 2))).sum(dim=1)

    def entropy(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        logs = self._logs(outputs.transpose(1, 2).contiguous())
        return -(logs.exp() * logs).sum(dim=(1, 2)) / outputs.shape[1]

    def likelihood(
        self, outputs: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor
    ) -> _CategoricalLikelihood:
        return _CategoricalLikelihood(self, outputs, actions, shift)

    def std(self, parameters: Tensor) -> Tensor | None:
        return None

    def saturation(self, actions: Tensor) -> Tensor | None:
        return None

    def answer(self, outputs: Tensor, spread: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Indices, int64, shape (batch[, num_actions]), and logits, shape (batch, num_outputs)."""
        parts = [group.argmax(dim=-1) for group in outputs.split(self.choices, dim=-1)]
        return parts[0] if len(parts) == 1 else torch.stack(parts, dim=-1), outputs

    def _largest(self, values: Tensor) -> Tensor:
        """Indices of each group's largest values, as floats; NaN where a value is NaN."""
        parts = []
        for group in values.split(self.choices, dim=-1):
            most, index = group.max(dim=-1)
            parts.append(index + (most - most))
        return torch.stack(parts, dim=-1)

    def _logs(self, outputs: Tensor) -> Tensor:
        """Log-probabilities of all choices. Shape of both: (members, num_outputs, rows)."""
        parts = []
        for group in outputs.split(self.choices, dim=1):
            # torch's log_softmax rounds differently in the remainder of a SIMD register
            lowered = group - group.amax(dim=1, keepdim=True)
            parts.append(lowered - lowered.exp().sum(dim=1, keepdim=True).log())
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _taken(self, actions: Tensor) -> Tensor:
        """One-hot choices. Shape: (members, num_actions, rows) to (members, num_outputs, rows)."""
        parts = [
            torch.arange(count, device=actions.device).view(1, -1, 1) == index.unsqueeze(1)
            for count, index in zip(self.choices, actions.unbind(dim=1), strict=True)
        ]
        return torch.cat(parts, dim=1).float()

    def _entropies(self, logs: Tensor, probabilities: Tensor) -> Tensor:
        """Entropy of each choice's group. Shape of all: (members, num_outputs, rows)."""
        parts = (probabilities * logs).split(self.choices, dim=1)
        sums = [part.sum(dim=1, keepdim=True).expand_as(part) for part in parts]
        return -(sums[0] if len(sums) == 1 else torch.cat(sums, dim=1))


class _CategoricalLikelihood:
    """Gradient of the log-probability by a logit: 1 for the choice made, minus its probability."""

    def __init__(
        self, distribution: Categorical, logits: Tensor, actions: Tensor, shift: Tensor
    ) -> None:
        self._distribution = distribution
        self._logs = distribution._logs(logits)
        self._taken = distribution._taken(actions)
        self.log_ratio = shift + (self._logs * self._taken).sum(dim=1, keepdim=True)

    def write_gradients(
        self,
        by_log_probability: Tensor,
        entropy_coefficient: float,
        by_outputs: Tensor,
        by_parameters: Tensor,
    ) -> None:
        probabilities = self._logs.exp()
        gradient = by_log_probability * (self._taken - probabilities)
        if entropy_coefficient > 0.0:
            # dH/dz = -p (log p + H); the bonus is a mean over rows
            entropies = self._distribution._entropies(self._logs, probabilities)
            share = entropy_coefficient / self._logs.shape[2]
            gradient += share * probabilities * (self._logs + entropies)
        by_outputs.copy_(gradient)

    def kl(self, old_outputs: Tensor, old_parameters: Tensor) -> Tensor:
        old = self._distribution._logs(old_outputs)
        change, weight = self._logs - old, old.exp()
        # Σ p_old (e^d - 1 - d) equals Σ -p_old d, but for equal policies its rounding errors are of
        # second order
        small = weight * (torch.expm1(change.clamp(max=1.0)) - change)
        large = self._logs.exp() - weight * (1.0 + change)
        return torch.where(change > 1.0, large, small).sum(dim=(1, 2)) / change.shape[2]


ActionDistribution: TypeAlias = Gaussian | Categorical


def distribution_of(environment: VecTask | type[VecTask]) -> ActionDistribution:
    choices = environment.action_choices
    return Categorical(choices) if choices else Gaussian(environment.num_actions)


def distribution_of_file(
    metadata: Mapping[str, str], num_outputs: int
) -> ActionDistribution | None:
    """A policy file's distribution (default: Gaussian); None if `num_outputs` does not fit."""
    if "distribution" not in metadata:
        return Gaussian(num_outputs)
    parts = metadata.get("choices", "").split(",")
    if metadata["distribution"] != _CATEGORICAL or not all(
        part.isascii() and part.isdigit() and 0 < len(part) < 8 for part in parts
    ):
        return None
    choices = tuple(int(part) for part in parts)
    fits = min(choices) > 0 and sum(choices) == num_outputs
    return Categorical(choices) if fits else None
