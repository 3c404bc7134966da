"""Distributions of actions: the one place that tells a Gaussian from a categorical one.

Tensors have K members in front, and an operation never mixes two of them. Everything is made of
sums, maxima, `exp`, `log` and `expm1`, which torch rounds alike wherever a number lies in a tensor:
a member's numbers do not depend on its slot.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.vec_task import VecTask

_SATURATED = 0.99
_CATEGORICAL = "categorical"


class Likelihood(ABC):
    """A minibatch's actions under the policy of the moment. Shapes have the rows last: (members, …,
    rows)."""

    log_ratio: Tensor
    """Logarithm of the probability's ratio to that of the policy that acted. Shape: (members, 1,
    rows)."""

    @abstractmethod
    def write_gradients(
        self,
        by_log_probability: Tensor,
        entropy_coefficient: float,
        by_outputs: Tensor,
        by_parameters: Tensor,
    ) -> None:
        """Write the loss's gradients, with the entropy bonus in it.

        `by_log_probability`: the loss's gradient, shape (members, 1, rows); `by_outputs`: of the
        network's outputs, shape (members, num_outputs, rows); `by_parameters`: shape (members,
        num_parameters).
        """

    @abstractmethod
    def kl(self, old_outputs: Tensor, old_parameters: Tensor) -> Tensor:
        """KL divergence of this policy from the old one, mean over rows. Shape: (members,).

        `old_outputs`: shape (members, num_outputs, rows).
        """


class ActionDistribution(ABC):
    """A policy's distribution of actions, given the outputs of its network and the parameters that
    are the same in every state."""

    parameter: ClassVar[str] = ""
    """Name of these parameters in a policy's file; empty where there are none."""
    answer_names: ClassVar[tuple[str, ...]] = ("action",)
    """Names of the tensors that `answer` gives."""

    @property
    @abstractmethod
    def num_actions(self) -> int:
        """Numbers of an action."""

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """Numbers that the network gives for a state."""

    @property
    def noise_size(self) -> int:
        """Random numbers behind an action."""
        return self.num_outputs

    @property
    def num_parameters(self) -> int:
        """Parameters that are the same in every state."""
        return 0

    @property
    def constant(self) -> float:
        """Part of the log-probability that depends on nothing."""
        return 0.0

    @property
    def metadata(self) -> dict[str, str]:
        """Entries of a policy file's metadata by which `distribution_of_file` knows it."""
        return {}

    @abstractmethod
    def initial_parameter(self, settings: TrainingSettings) -> float:
        """Value of every parameter before the first update."""

    @abstractmethod
    def draw_noise(self, generator: torch.Generator, out: Tensor) -> None:
        """Fill `out`, shape (…, noise_size), with one member's noise."""

    @abstractmethod
    def scaled(self, noise: Tensor, parameters: Tensor) -> Tensor:
        """Noise as `sample` takes it. Shapes: (members, …, noise_size), (members,
        num_parameters)."""

    @abstractmethod
    def sample(self, outputs: Tensor, noise: Tensor, out: Tensor | None = None) -> Tensor:
        """Actions, shape (…, num_actions), from outputs and scaled noise. NaN where an output is
        none."""

    @abstractmethod
    def mode(self, outputs: Tensor, spread: Tensor) -> Tensor:
        """Actions without noise, shape (…, num_actions). `spread`: what `spread` gives, for each
        row or for all."""

    def spread(self, parameters: Tensor) -> Tensor:
        """Parameters as `mode` takes them. Same shape."""
        return parameters

    @abstractmethod
    def log_probability(
        self, outputs: Tensor, noise: Tensor, actions: Tensor, parameters: Tensor
    ) -> Tensor:
        """Logarithm of the probability (density) of sampled actions, shape (members, rows).

        `noise` and `actions`: shape (members, rows, …), the noise before scaling.
        """

    @abstractmethod
    def entropy(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        """Entropy in nats, mean over the rows of `outputs`. Shape: (members,)."""

    @abstractmethod
    def likelihood(
        self, outputs: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor
    ) -> Likelihood:
        """The likelihood of a minibatch, rows last. `shift`: `constant` minus the log-probability
        under the policy that acted, shape (members, 1, rows)."""

    def std(self, parameters: Tensor) -> Tensor | None:
        """Mean standard deviation of an action's numbers, shape (members,); None where an action is
        no quantity."""
        return None

    def saturation(self, actions: Tensor) -> Tensor | None:
        """Share of the numbers at their bounds, shape (members,); None where they have none."""
        return None

    def answer(self, outputs: Tensor, spread: Tensor) -> Tensor | tuple[Tensor, ...]:
        """An exported policy's answer: the action without noise, and what else is of use."""
        return self.mode(outputs, spread)


def distribution_of(environment: VecTask | type[VecTask]) -> ActionDistribution:
    """The distribution for an environment's actions."""
    choices = environment.action_choices
    return Categorical(choices) if choices else Gaussian(environment.num_actions)


def distribution_of_file(
    metadata: Mapping[str, str], num_outputs: int
) -> ActionDistribution | None:
    """The distribution that a policy's file names, whose network has so many outputs; None where
    these do not fit. A file that names none is of a Gaussian."""
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


# ── Gaussian ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Gaussian(ActionDistribution):
    """Independent Gaussians, one for each number of an action, which the environment clips to [-1,
    1]. The network gives the means; the standard deviations are the same in every state."""

    size: int
    """Numbers of an action."""
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
        """The mean of the actions that training applied: after clipping.

        Where noise is wide and a mean lies off the middle, that differs from the clipped mean. A
        hovering craft, whose thrust was on average right, would sink or rise with the latter.
        """
        return clipped_gaussian_mean(outputs, spread)

    def spread(self, parameters: Tensor) -> Tensor:
        """Standard deviations."""
        return parameters.exp()

    def log_probability(
        self, outputs: Tensor, noise: Tensor, actions: Tensor, parameters: Tensor
    ) -> Tensor:
        constant = 0.5 * math.log(2.0 * math.pi)
        # the noise is the deviation in standard deviations, without another rounding
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
        spread = (log_std - old_log_std + 0.5 * (2.0 * (old_log_std - log_std)).exp() - 0.5).sum(
            dim=-1
        )
        moved = (old_outputs - self._means).mul_(self._inverse_std).square_().sum(dim=(1, 2))
        return spread + 0.5 * moved / self._means.shape[2]


def clipped_gaussian_mean(mean: Tensor, std: Tensor) -> Tensor:
    """Expectation of a Gaussian variable clipped to [-1, 1]. Shapes that broadcast."""
    low, high = (-1.0 - mean) / std, (1.0 - mean) / std
    below, above = torch.special.ndtr(low), torch.special.ndtr(-high)
    density = (torch.exp(-0.5 * low.square()) - torch.exp(-0.5 * high.square())) / math.sqrt(
        2.0 * math.pi
    )
    return (above - below + mean * (1.0 - below - above) + std * density).clamp(-1.0, 1.0)


# ── categorical ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Categorical(ActionDistribution):
    """Independent categorical distributions, one for each number of an action, which is the index
    of a choice. The network gives a logit for each choice."""

    choices: tuple[int, ...]
    """Choices of each number."""
    answer_names: ClassVar[tuple[str, ...]] = ("action", "logits")

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
        """Gumbel's noise: the largest of logits with it added is a sample of their distribution
        (Gumbel 1954)."""
        torch.rand(out.shape, generator=generator, out=out)
        out.clamp_(min=torch.finfo(out.dtype).tiny).log_().neg_().log_().neg_()

    def scaled(self, noise: Tensor, parameters: Tensor) -> Tensor:
        return noise

    def sample(self, outputs: Tensor, noise: Tensor, out: Tensor | None = None) -> Tensor:
        taken = self._largest(outputs + noise)
        return taken if out is None else out.copy_(taken)

    def mode(self, outputs: Tensor, spread: Tensor) -> Tensor:
        """The likeliest choices; of equally likely ones the first."""
        return self._largest(outputs)

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
    ) -> Likelihood:
        return _CategoricalLikelihood(self, outputs, actions, shift)

    def answer(self, outputs: Tensor, spread: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Indices, int64, shape (batch,), or (batch, num_actions) where an action has several; and
        the logits, shape (batch, num_outputs)."""
        parts = [group.argmax(dim=-1) for group in outputs.split(self.choices, dim=-1)]
        return parts[0] if len(parts) == 1 else torch.stack(parts, dim=-1), outputs

    def _largest(self, values: Tensor) -> Tensor:
        """Indices of the largest values of each group, as floats; NaN where one of them is none."""
        parts = []
        for group in values.split(self.choices, dim=-1):
            most, index = group.max(dim=-1)
            parts.append(index + (most - most))
        return torch.stack(parts, dim=-1)

    def _logs(self, outputs: Tensor) -> Tensor:
        """Logarithms of the probabilities of all choices, of outputs of the same shape (members,
        num_outputs, rows)."""
        parts = []
        for group in outputs.split(self.choices, dim=1):
            # torch's own takes another way through what is left over of SIMD registers
            lowered = group - group.amax(dim=1, keepdim=True)
            parts.append(lowered - lowered.exp().sum(dim=1, keepdim=True).log())
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _taken(self, actions: Tensor) -> Tensor:
        """1 at each choice that was taken, else 0. Shapes: (members, num_actions, rows) to
        (members, num_outputs, rows)."""
        parts = [
            torch.arange(count, device=actions.device).view(1, -1, 1) == index.unsqueeze(1)
            for count, index in zip(self.choices, actions.unbind(dim=1), strict=True)
        ]
        return torch.cat(parts, dim=1).float()

    def _entropies(self, logs: Tensor, probabilities: Tensor) -> Tensor:
        """Entropy of its group, for every choice. Shape of all: (members, num_outputs, rows)."""
        parts = (probabilities * logs).split(self.choices, dim=1)
        sums = [part.sum(dim=1, keepdim=True).expand_as(part) for part in parts]
        return -(sums[0] if len(sums) == 1 else torch.cat(sums, dim=1))


class _CategoricalLikelihood(Likelihood):
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
            # dH/dz = -p (log p + H), and the bonus is of the mean over rows
            entropies = self._distribution._entropies(self._logs, probabilities)
            share = entropy_coefficient / self._logs.shape[2]
            gradient += share * probabilities * (self._logs + entropies)
        by_outputs.copy_(gradient)

    def kl(self, old_outputs: Tensor, old_parameters: Tensor) -> Tensor:
        old = self._distribution._logs(old_outputs)
        change, weight = self._logs - old, old.exp()
        # Σ p_old (e^d - 1 - d) is the same sum as that of -p_old d, but of the second order in what
        # rounding makes of equal policies
        small = weight * (torch.expm1(change.clamp(max=1.0)) - change)
        large = self._logs.exp() - weight * (1.0 + change)
        return torch.where(change > 1.0, large, small).sum(dim=(1, 2)) / change.shape[2]
