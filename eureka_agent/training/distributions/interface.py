"""A distribution of actions, as update, rollout, policy, evaluation and export see it: they do not
know which one it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings


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
