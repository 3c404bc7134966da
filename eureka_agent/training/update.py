"""PPO's update of stacked members, with the gradient written out. A member's learning rate follows
each minibatch's KL divergence (Schulman et al. 2017, section 4, as in Isaac Gym)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.distributions import ActionDistribution
from eureka_agent.training.networks import StackedNetworks

_BETA_1 = 0.9
_BETA_2 = 0.999
_EPSILON = 1e-8


class StackedAdam:
    """Adam (Kingma and Ba 2015) of K stacked members, each with its own learning rate and steps."""

    def __init__(self, parameters: Tensor, gradients: Tensor) -> None:
        """Shape of each: (K, P)."""
        self._parameters = parameters
        self._gradients = gradients
        self._first = torch.zeros_like(parameters)
        self._second = torch.zeros_like(parameters)
        self._steps = torch.zeros(len(parameters), 1, dtype=torch.float64, device=parameters.device)

    def reset(self, member: int) -> None:
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


def generalized_advantages(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    ended: Tensor,
    terminated: Tensor,
    discount: float,
    gae_lambda: float,
) -> Tensor:
    """Generalised advantage (Schulman et al. 2016) of every step. Shape of all: (members, steps,
    num_envs). `next_values`: before resets; they count at truncations (Pardo et al. 2018), not if
    `terminated`. `ended`: either."""
    delta = rewards + discount * next_values * ~terminated - values
    carry = (discount * gae_lambda) * ~ended
    advantages = torch.empty_like(rewards)
    running = torch.zeros_like(rewards[:, 0])
    for step in reversed(range(rewards.shape[1])):
        running = delta[:, step] + carry[:, step] * running
        advantages[:, step] = running
    return advantages


_ROWS_PER_CHUNK = 4096
"""Rows per minibatch of members that are updated together on a CPU: they fit into the cache."""
_SMALLEST_LEARNING_RATE = 1e-5
_LARGEST_LEARNING_RATE = 1e-2
_LEARNING_RATE_FACTOR = 1.5
_ROUNDING_KL = 1e-10
"""KL divergence that is rounding alone. An update's first minibatch has the policy that acted, with
a KL of 0 or 1e-19 depending on device and number of members; the learning rate must not depend on
that. A step at the smallest learning rate gives 1e-9 or more."""


@dataclass
class Batch:
    """Data of one update. Shape of all: (members, rows, …)."""

    observations: Tensor
    """Normalised, with a last column of ones."""
    actions: Tensor
    """Before clipping."""
    outputs: Tensor
    """Outputs of the policy that acted."""
    log_probabilities: Tensor
    advantages: Tensor
    """Normalised."""
    values: Tensor
    """Outputs of the value network before the update, in its own scale, as the targets."""
    targets: Tensor
    parameters: Tensor
    """Parameters of the distribution. Shape: (members, num_parameters)."""

    def members(self, first: int, end: int) -> Batch:
        """The part of the members `first` to `end` (exclusive)."""
        return Batch(*(getattr(self, name)[first:end] for name in self.__dataclass_fields__))


def adapted_learning_rate(learning_rate: Tensor, kl: Tensor, desired_kl: float) -> Tensor:
    """Learning rate times 1.5 below half the desired KL, divided by 1.5 above twice it."""
    lowered = (learning_rate / _LEARNING_RATE_FACTOR).clamp(min=_SMALLEST_LEARNING_RATE)
    raised = (learning_rate * _LEARNING_RATE_FACTOR).clamp(max=_LARGEST_LEARNING_RATE)
    small = (kl < 0.5 * desired_kl) & (kl > _ROUNDING_KL)
    return torch.where(kl > 2.0 * desired_kl, lowered, torch.where(small, raised, learning_rate))


@dataclass(eq=False)
class PPOUpdate:
    """Epochs of minibatches for every member, shuffled by its own permutations."""

    _networks: StackedNetworks
    _distribution: ActionDistribution
    _adam: StackedAdam
    _learning_rate: Tensor
    """Shape: (K, 1), changed in place."""
    _settings: TrainingSettings

    def run(self, batch: Batch, permutations: Tensor) -> Tensor:
        """Update the leading members. `permutations`: int64, shape (members, epochs, rows). Returns
        means over minibatches: KL, policy loss and value loss, shape (3, members)."""
        members, rows = batch.advantages.shape
        size = rows // self._settings.minibatches
        chunk = members if batch.advantages.is_cuda else max(1, _ROWS_PER_CHUNK // size)
        reports = torch.zeros(3, members, device=batch.advantages.device)
        for first in range(0, members, chunk):
            end = min(first + chunk, members)
            part, order = batch.members(first, end), permutations[first:end]
            self._update_chunk(first, end, part, order, size, reports[:, first:end])
        return reports / (self._settings.epochs * self._settings.minibatches)

    def _update_chunk(
        self, first: int, end: int, batch: Batch, permutations: Tensor, size: int, report: Tensor
    ) -> None:
        members, rows = batch.advantages.shape
        minibatches = self._settings.minibatches
        # the distribution's constant minus the old log-probability; minus the advantage's share of
        # the loss; the old value; the target
        shift = self._distribution.constant - batch.log_probabilities
        advantages = batch.advantages * (-1.0 / size)
        terms = torch.stack((shift, advantages, batch.values, batch.targets), dim=-1)
        packed = torch.cat((batch.actions, batch.outputs, terms), dim=-1).flatten(0, 1)
        widths = (batch.actions.shape[-1], batch.outputs.shape[-1], 1, 1, 1, 1)
        observations = batch.observations.flatten(0, 1)
        offsets = (torch.arange(members, device=permutations.device) * rows).view(-1, 1, 1)
        # stays zero for unused outputs
        gradient = torch.zeros(members, 2, size, self._networks.num_outputs, device=packed.device)
        for epoch in range(self._settings.epochs):
            # minibatch first, so that each one is contiguous
            order = permutations[:, epoch, : size * minibatches].view(members, minibatches, size)
            index = (order + offsets).transpose(0, 1)
            # rows last: torch is several times faster on long rows than on rows of three
            rows_of = packed.index_select(0, index.flatten())
            numbers = rows_of.view(minibatches, members, size, -1).transpose(2, 3)
            parts = numbers.contiguous().split(widths, dim=2)
            # policy and value network alternate
            twice = index.unsqueeze(2).expand(-1, -1, 2, -1).flatten()
            inputs = observations.index_select(0, twice).view(minibatches, 2 * members, size, -1)
            for minibatch in range(minibatches):
                given = inputs[minibatch], batch.parameters, gradient
                report += self._minibatch(first, end, *given, *(part[minibatch] for part in parts))

    def _minibatch(
        self,
        first: int,
        end: int,
        inputs: Tensor,
        old_parameters: Tensor,
        output_gradient: Tensor,
        actions: Tensor,
        old_outputs: Tensor,
        log_ratio_shift: Tensor,
        weight: Tensor,
        old_value: Tensor,
        target: Tensor,
    ) -> Tensor:
        """Make one gradient step; return KL, policy loss and value loss, shape (3, members). Shape
        of actions and outputs: (members, entries, size), of later tensors: (members, 1, size)."""
        settings, size = self._settings, actions.shape[2]
        networks = self._networks.members(first, end)
        outputs = networks.both.forward(inputs)
        by_network = outputs[-1].view(output_gradient.shape)
        used = old_outputs.shape[1]
        policy_outputs = by_network[:, 0, :, :used].transpose(1, 2).contiguous()
        values = by_network[:, 1, :, 0].unsqueeze(1)

        likelihood = self._distribution.likelihood(
            policy_outputs, networks.distribution_parameters, actions, log_ratio_shift
        )
        ratio = likelihood.log_ratio.exp_()
        loss = ratio * weight
        clipped_loss = ratio.clamp_(1.0 - settings.clip, 1.0 + settings.clip).mul_(weight)
        # where the clipped loss is larger, it does not depend on the policy
        by_log_probability = loss * (loss >= clipped_loss)
        likelihood.write_gradients(
            by_log_probability,
            settings.entropy_coefficient,
            output_gradient[:, 0, :, :used].transpose(1, 2),
            networks.distribution_gradient,
        )

        error = values - target
        squared = error.square()
        if settings.clip_value_loss:
            # in this order a value within the range has exactly the same error; rounding must not
            # make it larger, which would remove its gradient
            change = values - old_value
            clipped = change.clamp(-settings.clip, settings.clip)
            clipped_squared = clipped.sub_(change).add_(error).square_()
            error *= squared >= clipped_squared
            squared = torch.maximum(squared, clipped_squared)
        factor = 2.0 * settings.value_coefficient / size
        torch.mul(error[:, 0], factor, out=output_gradient[:, 1, :, 0])
        networks.both.backward(outputs, output_gradient.flatten(0, 1))

        kl = likelihood.kl(old_outputs, old_parameters)
        rate = self._learning_rate[first:end]
        if settings.desired_kl > 0.0:
            rate.copy_(adapted_learning_rate(rate, kl.unsqueeze(-1), settings.desired_kl))
        norm = torch.linalg.vector_norm(self._networks.gradients[first:end], dim=1, keepdim=True)
        scale = (settings.max_gradient_norm / (norm + 1e-6)).clamp_(max=1.0)
        self._adam.step(first, end, rate, scale)
        policy_loss = torch.maximum(loss, clipped_loss).sum(dim=(1, 2))
        return torch.stack((kl, policy_loss, squared.mean(dim=(1, 2))))
