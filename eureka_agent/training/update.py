"""PPO's update (Schulman et al. 2017) of stacked members, with the gradient written out and a learning rate for each member.

The learning rate follows the KL divergence of every minibatch (Schulman et al. 2017, section 4, as Isaac Gym and rsl-rl use it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.adam import StackedAdam
from eureka_agent.training.networks import MemberNetworks, StackedNetworks

_ROWS_PER_CHUNK = 4096
"""On a CPU members are updated in groups of about this many rows a minibatch: what a group touches stays in the cache."""
_SMALLEST_LEARNING_RATE = 1e-5
_LARGEST_LEARNING_RATE = 1e-2
_LEARNING_RATE_FACTOR = 1.5


@dataclass
class Batch:
    """What one update learns from. The leading dimensions of all are (members, rows)."""

    observations: Tensor
    """Normalised. Shape: (members, rows, num_observations)."""
    actions: Tensor
    """Shape: (members, rows, num_actions), before clipping."""
    means: Tensor
    """Of the policy that acted. Same shape."""
    log_probabilities: Tensor
    """Of the actions under that policy."""
    advantages: Tensor
    """Normalised."""
    values: Tensor
    """Of the value network before the update, in its own scale."""
    targets: Tensor
    """Returns in the value network's scale."""
    log_std: Tensor
    """Of the policy that acted. Shape: (members, num_actions)."""

    def members(self, first: int, end: int) -> Batch:
        """The part of the members `first` to `end` (not included)."""
        return Batch(*(getattr(self, name)[first:end] for name in self.__dataclass_fields__))


@dataclass
class UpdateReport:
    """Means over an update's minibatches. Shape of each: (members,)."""

    kl: Tensor
    policy_loss: Tensor
    value_loss: Tensor


def adapted_learning_rate(learning_rate: Tensor, kl: Tensor, desired_kl: float) -> Tensor:
    """The learning rate times 1.5 below half the KL aimed at, divided by 1.5 above twice it. Shape of both: (members, 1)."""
    lowered = (learning_rate / _LEARNING_RATE_FACTOR).clamp(min=_SMALLEST_LEARNING_RATE)
    raised = (learning_rate * _LEARNING_RATE_FACTOR).clamp(max=_LARGEST_LEARNING_RATE)
    small = (kl < 0.5 * desired_kl) & (kl > 0.0)
    return torch.where(kl > 2.0 * desired_kl, lowered, torch.where(small, raised, learning_rate))


class PPOUpdate:
    """Epochs of minibatches for every member, each shuffled by permutations of its own."""

    def __init__(
        self, networks: StackedNetworks, adam: StackedAdam, learning_rate: Tensor, settings: TrainingSettings
    ) -> None:
        """`learning_rate`: shape (K, 1), changed in place."""
        self._networks = networks
        self._adam = adam
        self._learning_rate = learning_rate
        self._settings = settings

    def run(self, batch: Batch, permutations: Tensor) -> UpdateReport:
        """Update the leading members. `permutations`: int64, shape (members, epochs, rows)."""
        members, rows = batch.advantages.shape
        size = rows // self._settings.minibatches
        chunk = members if batch.advantages.is_cuda else max(1, _ROWS_PER_CHUNK // size)
        reports = torch.zeros(3, members, device=batch.advantages.device)
        for first in range(0, members, chunk):
            end = min(first + chunk, members)
            self._update_chunk(
                first, end, batch.members(first, end), permutations[first:end], size, reports[:, first:end]
            )
        kl, policy_loss, value_loss = reports / (self._settings.epochs * self._settings.minibatches)
        return UpdateReport(kl, policy_loss, value_loss)

    def _update_chunk(
        self, first: int, end: int, batch: Batch, permutations: Tensor, size: int, report: Tensor
    ) -> None:
        networks = self._networks.members(first, end)
        members, rows = batch.advantages.shape
        minibatches = self._settings.minibatches
        scalars = torch.stack((batch.log_probabilities, batch.advantages, batch.values, batch.targets), dim=-1)
        parts = [part.flatten(0, 1) for part in (batch.observations, batch.actions, batch.means, scalars)]
        offsets = (torch.arange(members, device=permutations.device) * rows).view(-1, 1, 1)
        for epoch in range(self._settings.epochs):
            # minibatch first, so that each one is contiguous
            index = (permutations[:, epoch, : size * minibatches].view(members, minibatches, size) + offsets).transpose(
                0, 1
            )
            shuffled = [part.index_select(0, index.flatten()).view(minibatches, members, size, -1) for part in parts]
            for observations, actions, means, numbers in zip(*shuffled, strict=True):
                report += self._minibatch(
                    first, end, networks, observations, actions, means, batch.log_std, numbers.unbind(-1)
                )

    def _minibatch(
        self,
        first: int,
        end: int,
        networks: MemberNetworks,
        observations: Tensor,
        actions: Tensor,
        old_means: Tensor,
        old_log_std: Tensor,
        numbers: tuple[Tensor, ...],
    ) -> Tensor:
        """One gradient step. Returns KL, policy loss and value loss, shape (3, members)."""
        settings = self._settings
        old_log_probability, advantage, old_value, target = numbers
        size = advantage.shape[1]

        policy_outputs = networks.policy.forward(observations)
        log_std = networks.log_std.unsqueeze(1)
        inverse_std = (-log_std).exp()
        deviation = (actions - policy_outputs[-1]) * inverse_std
        log_probability = gaussian_log_probability(deviation, log_std)
        ratio = (log_probability - old_log_probability).exp_()
        clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
        gain, clipped_gain = ratio * advantage, clipped * advantage
        # where the clipped gain is the smaller one, it does not depend on the policy
        by_log_probability = (gain * (gain <= clipped_gain)).mul_(-1.0 / size).unsqueeze(-1)
        by_mean = by_log_probability * deviation
        by_log_std = (by_mean * deviation - by_log_probability).sum(dim=1) - settings.entropy_coefficient
        networks.policy.backward(policy_outputs, by_mean.mul_(inverse_std))
        networks.log_std_gradient.copy_(by_log_std)

        value_outputs = networks.value.forward(observations)
        value = value_outputs[-1].squeeze(-1)
        error = value - target
        squared = error.square()
        if settings.clip_value_loss:
            clipped_error = old_value + (value - old_value).clamp_(-settings.clip, settings.clip) - target
            clipped_squared = clipped_error.square_()
            error *= squared >= clipped_squared
            squared = torch.maximum(squared, clipped_squared)
        by_value = error.mul_(2.0 * settings.value_coefficient / size).unsqueeze(-1)
        networks.value.backward(value_outputs, by_value)

        kl = _mean_kl(old_means, old_log_std, policy_outputs[-1], networks.log_std, inverse_std)
        rate = self._learning_rate[first:end]
        if settings.desired_kl > 0.0:
            rate.copy_(adapted_learning_rate(rate, kl.unsqueeze(-1), settings.desired_kl))
        norm = torch.linalg.vector_norm(self._networks.gradients[first:end], dim=1, keepdim=True)
        scale = (settings.max_gradient_norm / (norm + 1e-6)).clamp_(max=1.0)
        self._adam.step(first, end, rate, scale)
        return torch.stack((kl, -torch.minimum(gain, clipped_gain).mean(dim=1), squared.mean(dim=1)))


def gaussian_log_probability(deviation: Tensor, log_std: Tensor) -> Tensor:
    """Logarithm of a diagonal Gaussian's density. `deviation`: (action − mean) / std, shape (…, num_actions)."""
    constant = 0.5 * math.log(2.0 * math.pi)
    return -(0.5 * deviation.square() + (log_std + constant)).sum(dim=-1)


def _mean_kl(old_means: Tensor, old_log_std: Tensor, means: Tensor, log_std: Tensor, inverse_std: Tensor) -> Tensor:
    """KL divergence of the new policy from the old one, mean over rows. Shape: (members,)."""
    spread = (log_std - old_log_std + 0.5 * (2.0 * (old_log_std - log_std)).exp() - 0.5).sum(dim=-1)
    moved = ((old_means - means) * inverse_std).square().sum(dim=(1, 2))
    return spread + 0.5 * moved / means.shape[1]
