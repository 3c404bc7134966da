"""Choices: one categorical distribution, or several independent ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.distributions.interface import ActionDistribution, Likelihood

CATEGORICAL = "categorical"
"""Name in a policy file's metadata."""


@dataclass(frozen=True)
class Categorical(ActionDistribution):
    """Independent categorical distributions over indices; the network gives a logit per choice."""

    choices: tuple[int, ...]
    """Number of choices by entry of the action."""
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
        return {"distribution": CATEGORICAL, "choices": ",".join(map(str, self.choices))}

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


class _CategoricalLikelihood(Likelihood):
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
