"""Policy and value networks of K members: one `[K, P]` tensor whose strided views are the layers.
The written-out backward pass writes directly into `[K, P]`. No operation mixes members, and a
member's numbers do not depend on how many there are. Statistics that scale inputs and values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from eureka_agent.training.distributions import ActionDistribution

_CLIP = 10.0
_EPSILON = 1e-2
"""Added to a standard deviation, so that an almost constant observation is not amplified."""


class ObservationStatistics:
    """Mean and variance of all observations of each member; updated once per iteration."""

    def __init__(self, members: int, size: int, device: torch.device | str) -> None:
        self.mean = torch.zeros(members, size, device=device)
        self.variance = torch.ones(members, size, device=device)
        self._count = torch.zeros(members, 1, device=device)

    def reset(self, member: int) -> None:
        """Set mean 0 and variance 1: the first iteration's observations pass unchanged."""
        self.mean[member] = 0.0
        self.variance[member] = 1.0
        self._count[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        return {"mean": self.mean, "variance": self.variance, "count": self._count}

    def update(self, observations: Tensor) -> None:
        """Add an iteration, shape (members, rows, size), as in Chan, Golub, LeVeque 1983."""
        members, rows = observations.shape[0], observations.shape[1]
        mean, variance, count = self.mean[:members], self.variance[:members], self._count[:members]
        new_mean = observations.mean(dim=1)
        new_variance = (observations - new_mean.unsqueeze(1)).square().mean(dim=1)
        share = rows / (count + rows)
        difference = new_mean - mean
        mean += difference * share
        variance += (new_variance - variance) * share + difference.square() * share * (1.0 - share)
        # before the first update the count is 0, so the initial variance has no weight
        count += rows

    def deviation(self) -> Tensor:
        """Divisor of normalised observations. Shape: (K, size)."""
        return self.variance.sqrt() + _EPSILON


def with_ones(inputs: Tensor) -> Tensor:
    """Append a column of ones, for a stacked perceptron. Shape: (…, size) to (…, size + 1)."""
    return torch.nn.functional.pad(inputs, (0, 1), value=1.0)


def normalize(
    observations: Tensor, mean: Tensor, inverse_deviation: Tensor, out: Tensor | None = None
) -> Tensor:
    """Observations with mean 0 and deviation 1, clipped to ±10. Shapes that broadcast."""
    return torch.sub(observations, mean, out=out).mul_(inverse_deviation).clamp_(-_CLIP, _CLIP)


class ReturnStatistics:
    """Mean and deviation of each member's returns, by which the value head is scaled, and corrected
    at every change (PopArt, van Hasselt et al. 2016). Before the first update every value is 0."""

    _MEMORY = 10.0
    """Effective window in iterations; older returns are of outdated policies."""

    def __init__(self, members: int, device: torch.device | str) -> None:
        self.mean = torch.zeros(members, 1, device=device)
        self.deviation = torch.zeros(members, 1, device=device)
        self._square = torch.zeros(members, 1, device=device)
        self._iterations = torch.zeros(members, 1, device=device)

    def reset(self, member: int) -> None:
        for tensor in self.member_tensors().values():
            tensor[member] = 0.0

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        rest = {"square": self._square, "iterations": self._iterations}
        return {"mean": self.mean, "deviation": self.deviation, **rest}

    def update(self, returns: Tensor) -> tuple[Tensor, Tensor]:
        """Add returns, shape (members, rows); return a value head's scale and shift, shape
        (members, 1): 1 and 0 at first, as an untrained network has nothing to keep."""
        members = len(returns)
        tensors = (self.mean, self.deviation, self._iterations)
        mean, deviation, iterations = (tensor[:members] for tensor in tensors)
        old_mean, old_deviation, known = mean.clone(), deviation.clone(), iterations > 0
        iterations.add_(1.0).clamp_(max=self._MEMORY)
        share = 1.0 / iterations
        new_mean = returns.mean(dim=1, keepdim=True)
        new_variance = (returns - new_mean).square().mean(dim=1, keepdim=True)
        difference = new_mean - mean
        mean += difference * share
        variance = self._square[:members]
        variance += (new_variance - variance) * share + difference.square() * share * (1.0 - share)
        deviation.copy_(variance.sqrt().clamp_(min=1e-8))
        scale = torch.where(known, old_deviation / deviation, 1.0)
        shift = torch.where(known, (old_mean - mean) / deviation, 0.0)
        return scale, shift


Activation = Literal["elu", "tanh"]

_ALIGNMENT = 64
"""Half a member's row is padded to this many floats, for equal SIMD lanes of all members."""
_LEAST_OUTPUTS = 2
"""Fewest outputs: products of width 1 round differently for one member than for several."""
_POLICY_HEAD_GAIN = 0.01
_POLICY, _VALUE = "policy", "value"


def activate_(activation: Activation, value: Tensor) -> Tensor:
    if activation == "tanh":
        return value.tanh_()
    # torch's ELU uses expm1, six times as slow as exp; the difference is below 1e-7
    return torch.maximum(value, value.clamp(max=0.0).exp_().sub_(1.0), out=value)


def _times_slope_(activation: Activation, gradient: Tensor, output: Tensor) -> Tensor:
    """Multiply by the slope, in place: 1 + min(output, 0) for ELU, 1 - output² for tanh."""
    if activation == "elu":
        return gradient.addcmul_(gradient, output.clamp(max=0.0))
    return torch.ops.aten.tanh_backward.grad_input(gradient, output, grad_input=gradient)


class _Layer:
    """Views of an affine map and its gradient, shape (members, inputs + 1, outputs), bias last."""

    def __init__(self, affine: Tensor, gradient: Tensor) -> None:
        self.affine, self.gradient = affine, gradient
        self.weight, self.bias = affine[:, :-1], affine[:, -1:]
        self.transposed_weight = self.weight.transpose(1, 2)
        self.weight_gradient, self.bias_gradient = gradient[:, :-1], gradient[:, -1:]


class StackedPerceptron:
    """One perceptron per member: views of rows of the parameters."""

    def __init__(self, layers: Sequence[_Layer], activation: Activation) -> None:
        self._layers = tuple(layers)
        self._activation: Activation = activation

    def forward(self, inputs: Tensor) -> list[Tensor]:
        """Outputs of all layers, inputs first. `inputs`: shape (members, rows, inputs + 1), ending
        in 1, so that a layer with its bias is one product."""
        outputs = [inputs]
        for index, layer in enumerate(self._layers):
            value = (
                torch.baddbmm(layer.bias, outputs[-1], layer.weight)
                if index
                else torch.bmm(inputs, layer.affine)
            )
            is_last = index == len(self._layers) - 1
            outputs.append(value if is_last else activate_(self._activation, value))
        return outputs

    def backward(self, outputs: Sequence[Tensor], gradient: Tensor) -> None:
        """Write the parameters' gradients, from `forward`'s outputs and the loss's gradient."""
        for index in reversed(range(1, len(self._layers))):
            layer, inputs = self._layers[index], outputs[index]
            torch.bmm(inputs.transpose(1, 2), gradient, out=layer.weight_gradient)
            torch.sum(gradient, dim=1, keepdim=True, out=layer.bias_gradient)
            gradient = torch.bmm(gradient, layer.transposed_weight)
            gradient = _times_slope_(self._activation, gradient, inputs)
        torch.bmm(outputs[0].transpose(1, 2), gradient, out=self._layers[0].gradient)


@dataclass
class MemberNetworks:
    policy: StackedPerceptron
    value: StackedPerceptron
    both: StackedPerceptron
    """Policy and value networks alternating, as twice as many members: one product instead of two.
    A policy's leading `num_policy_outputs` outputs count, a value network's first."""
    num_policy_outputs: int
    distribution_parameters: Tensor
    """State-independent parameters of the distribution: a view, shape (members, num_parameters)."""
    distribution_gradient: Tensor

    def outputs(self, inputs: Tensor) -> Tensor:
        """Outputs for the action distribution, shape (members, rows, num_policy_outputs)."""
        return self.policy.forward(inputs)[-1][..., : self.num_policy_outputs]

    def values(self, inputs: Tensor) -> Tensor:
        return self.value.forward(inputs)[-1][..., 0]


class StackedNetworks:
    """Policy and value networks of K members. A member's row has two halves of one layout: the rows
    are also 2K half rows. Both last layers have the same width; unused outputs stay zero."""

    def __init__(
        self,
        members: int,
        num_observations: int,
        distribution: ActionDistribution,
        hidden_sizes: Sequence[int],
        activation: Activation,
        device: torch.device | str,
    ) -> None:
        self.num_outputs = max(distribution.num_outputs, _LEAST_OUTPUTS)
        """Width of both networks' last layers."""
        sizes = (num_observations, *hidden_sizes, self.num_outputs)
        self._distribution = distribution
        self.activation: Activation = activation
        self._affine_shapes = [(inputs + 1, outputs) for inputs, outputs in pairwise(sizes)]
        size = sum(math.prod(shape) for shape in self._affine_shapes)
        size += distribution.num_parameters
        self._half = math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        self.parameters = torch.zeros(members, 2 * self._half, device=device)
        """Shape: (K, P)."""
        self.gradients = torch.zeros_like(self.parameters)
        self._ranges: dict[tuple[int, int], MemberNetworks] = {}

    def initialize(
        self, member: int, seed: int, distribution_parameter: float, inputs: int | None = None
    ) -> None:
        """Draw a member's parameters on the CPU: orthogonal weights, zero biases, a small head. The
        weights of observations from number `inputs` on, if given, are 0, and stay so where those
        are 0."""
        generator = torch.Generator().manual_seed(seed)
        self.parameters[member] = 0.0
        named = self._named(self.parameters)
        for name, tensor in named.items():
            if name.endswith(".weight"):
                last = name.startswith(f"{_POLICY}.{len(self._affine_shapes) - 1}")
                last_value = name.startswith(f"{_VALUE}.{len(self._affine_shapes) - 1}")
                gain = _POLICY_HEAD_GAIN if last else 1.0 if last_value else math.sqrt(2.0)
                first = name.endswith(".0.weight")
                weight = torch.empty(tensor.shape[1:])[: inputs if first else None]
                torch.nn.init.orthogonal_(weight, gain, generator)
                tensor[member, : len(weight)] = weight.to(tensor.device)
        if self._distribution.parameter:
            named[self._distribution.parameter][member] = distribution_parameter

    def members(self, first: int, end: int) -> MemberNetworks:
        """Networks of the members `first` to `end` (exclusive), as views."""
        if (first, end) not in self._ranges:
            rows = slice(first, end)
            self._ranges[first, end] = self._views(self.parameters[rows], self.gradients[rows])
        return self._ranges[first, end]

    def member_tensors(self, member: int) -> dict[str, Tensor]:
        """Copies of a member's parameters: `policy.<i>.weight` (inputs, outputs) and so on."""
        named = self._named(self.parameters)
        return {name: tensor[member].clone() for name, tensor in named.items()}

    def rescale_values(self, members: int, scale: Tensor, shift: Tensor) -> None:
        """Scale and shift the leading members' value outputs. Shape of each: (members, 1)."""
        named, last = self._named(self.parameters[:members]), len(self._affine_shapes) - 1
        named[f"{_VALUE}.{last}.weight"].mul_(scale.unsqueeze(-1))
        named[f"{_VALUE}.{last}.bias"].mul_(scale.unsqueeze(-1)).add_(shift.unsqueeze(-1))

    def _views(self, parameters: Tensor, gradients: Tensor) -> MemberNetworks:
        halves = [tensor.view(-1, self._half) for tensor in (parameters, gradients)]

        def perceptron(rows: slice) -> StackedPerceptron:
            affine, gradient = (self._affine(half[rows]) for half in halves)
            layers = [_Layer(*pair) for pair in zip(affine, gradient, strict=True)]
            return StackedPerceptron(layers, self.activation)

        own = self._of_distribution(parameters), self._of_distribution(gradients)
        policy, value = perceptron(slice(0, None, 2)), perceptron(slice(1, None, 2))
        both = perceptron(slice(None))
        return MemberNetworks(policy, value, both, self._distribution.num_outputs, *own)

    def _of_distribution(self, tensor: Tensor) -> Tensor:
        """View of the distribution's own parameters in rows of the parameters."""
        end = sum(math.prod(shape) for shape in self._affine_shapes)
        return tensor[:, end : end + self._distribution.num_parameters]

    def _affine(self, half: Tensor) -> list[Tensor]:
        """Views of the layers' affine maps in half rows, shape (half rows, inputs + 1, outputs)."""
        views, offset = [], 0
        for shape in self._affine_shapes:
            views.append(half[:, offset : offset + math.prod(shape)].unflatten(1, shape))
            offset += math.prod(shape)
        return views

    def _named(self, tensor: Tensor) -> dict[str, Tensor]:
        """Views of all used entries by name; the first dimension is the row."""
        named = {}
        halves = (_POLICY, tensor[:, : self._half]), (_VALUE, tensor[:, self._half :])
        for network, half in halves:
            for index, used in enumerate(self._affine(half)):
                if index == len(self._affine_shapes) - 1:
                    used = used[:, :, : self._distribution.num_outputs if network == _POLICY else 1]
                named[f"{network}.{index}.weight"] = used[:, :-1]
                named[f"{network}.{index}.bias"] = used[:, -1:]
        if self._distribution.parameter:
            named[self._distribution.parameter] = self._of_distribution(tensor)
        return named
