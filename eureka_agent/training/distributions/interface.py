"""Interface of action distributions, for update, rollout, policy, evaluation and export."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings


class Likelihood(ABC):
    """A minibatch's actions under the current policy. Shape: (members, …, rows)."""

    log_ratio: Tensor
    """Log of the probability ratio to the policy that acted. Shape: (members, 1, rows)."""

    @abstractmethod
    def write_gradients(
        self,
        by_log_probability: Tensor,
        entropy_coefficient: float,
        by_outputs: Tensor,
        by_parameters: Tensor,
    ) -> None:
        """Write gradients with entropy bonus: `by_outputs`, (members, num_outputs, rows),
        `by_parameters`, (members, num_parameters). `by_log_probability`: (members, 1, rows)."""

    @abstractmethod
    def kl(self, old_outputs: Tensor, old_parameters: Tensor) -> Tensor:
        """Mean KL divergence, (members,). `old_outputs`: shape (members, num_outputs, rows)."""


class ActionDistribution(ABC):
    """Distribution of actions, given network outputs and state-independent parameters."""

    parameter: ClassVar[str] = ""
    """Name of these parameters in a policy's file; empty if there are none."""
    answer_names: ClassVar[tuple[str, ...]] = ("action",)
    """Names of the tensors of `answer`."""

    @property
    @abstractmethod
    def num_actions(self) -> int:
        """Entries of an action."""

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """Outputs of the network."""

    @property
    def noise_size(self) -> int:
        """Random numbers of an action."""
        return self.num_outputs

    @property
    def num_parameters(self) -> int:
        """State-independent parameters."""
        return 0

    @property
    def constant(self) -> float:
        """Constant part of the log-probability."""
        return 0.0

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of a policy's file, for `distribution_of_file`."""
        return {}

    @abstractmethod
    def initial_parameter(self, settings: TrainingSettings) -> float:
        """Initial value of every parameter."""

    @abstractmethod
    def draw_noise(self, generator: torch.Generator, out: Tensor) -> None:
        """Fill `out`, shape (…, noise_size), with one member's noise."""

    @abstractmethod
    def scaled(self, noise: Tensor, parameters: Tensor) -> Tensor:
        """Noise for `sample`. Shapes: (members, …, noise_size), (members, num_parameters)."""

    @abstractmethod
    def sample(self, outputs: Tensor, noise: Tensor, out: Tensor | None = None) -> Tensor:
        """Actions, shape (…, num_actions), from outputs and scaled noise; NaN for NaN outputs."""

    @abstractmethod
    def mode(self, outputs: Tensor, spread: Tensor) -> Tensor:
        """Actions without noise, shape (…, num_actions). `spread`: of `spread`."""

    def spread(self, parameters: Tensor) -> Tensor:
        """Parameters for `mode`, of the same shape."""
        return parameters

    @abstractmethod
    def log_probability(
        self, outputs: Tensor, noise: Tensor, actions: Tensor, parameters: Tensor
    ) -> Tensor:
        """Log-probability (density), shape (members, rows), of actions (members, rows, …)."""

    @abstractmethod
    def entropy(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        """Entropy in nats, mean over the rows of `outputs`. Shape: (members,)."""

    @abstractmethod
    def likelihood(
        self, outputs: Tensor, parameters: Tensor, actions: Tensor, shift: Tensor
    ) -> Likelihood:
        """Likelihood of a minibatch. `shift`: `constant` minus the log-probability under the policy
        that acted, shape (members, 1, rows)."""

    def std(self, parameters: Tensor) -> Tensor | None:
        """Mean standard deviation of an action's entries, shape (members,); None for choices."""
        return None

    def saturation(self, actions: Tensor) -> Tensor | None:
        """Share of entries at their bounds, shape (members,); None for choices."""
        return None

    def answer(self, outputs: Tensor, spread: Tensor) -> Tensor | tuple[Tensor, ...]:
        """An exported policy's result: the action without noise, and further tensors."""
        return self.mode(outputs, spread)
