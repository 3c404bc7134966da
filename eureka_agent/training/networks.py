"""Policy and value networks of K members, stacked: one `[K, P]` tensor of parameters whose strided views are the layers.

The backward pass is written out: for two small perceptrons it is shorter than what autograd does, and it writes straight into `[K, P]`.
No operation mixes members, and a member's numbers do not depend on how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Activation = Literal["elu", "tanh"]

_ALIGNMENT = 64
"""A member's row is padded to this many floats, so that every member meets the same SIMD lanes."""
_POLICY_HEAD_GAIN = 0.01


def activate_(activation: Activation, value: Tensor) -> Tensor:
    """The activation, in place where it can be."""
    if activation == "tanh":
        return value.tanh_()
    # torch's own ELU goes through expm1, which takes six times as long as exp; the difference is below 1e-7
    return torch.maximum(value, value.clamp(max=0.0).exp_().sub_(1.0), out=value)


def _times_slope(activation: Activation, gradient: Tensor, output: Tensor) -> Tensor:
    """The gradient before the activation from the one after it and the activation's output.

    The slope is 1 + min(output, 0) for ELU (torch's `elu_backward` is several times slower), 1 − output² for tanh.
    """
    factor = output.clamp(max=0.0) if activation == "elu" else output.square().neg_()
    return gradient.addcmul_(gradient, factor)


@dataclass
class _Layer:
    weight: Tensor
    """Shape: (members, inputs, outputs), a view."""
    bias: Tensor
    """Shape: (members, 1, outputs), a view."""
    weight_gradient: Tensor
    bias_gradient: Tensor


class StackedPerceptron:
    """One perceptron for each of a number of members: views of rows of the parameters."""

    def __init__(self, layers: Sequence[_Layer], activation: Activation) -> None:
        self._layers = tuple(layers)
        self._activation: Activation = activation

    def forward(self, inputs: Tensor) -> list[Tensor]:
        """Outputs of all layers, the inputs first. `inputs`: shape (members, rows, inputs)."""
        outputs = [inputs]
        for index, layer in enumerate(self._layers):
            if layer.weight.shape[-1] == 1:
                # bmm with an output one wide takes many times as long as its work
                value = (outputs[-1] * layer.weight.transpose(1, 2)).sum(dim=-1, keepdim=True) + layer.bias
            else:
                value = torch.baddbmm(layer.bias, outputs[-1], layer.weight)
            outputs.append(value if index == len(self._layers) - 1 else activate_(self._activation, value))
        return outputs

    def backward(self, outputs: Sequence[Tensor], gradient: Tensor) -> None:
        """Write the parameters' gradients. `outputs` is what `forward` gave, `gradient` the loss's by its last entry."""
        for index in reversed(range(len(self._layers))):
            layer, inputs = self._layers[index], outputs[index]
            narrow = gradient.shape[-1] == 1
            layer.bias_gradient.copy_(gradient.sum(dim=1, keepdim=True))
            if narrow:
                layer.weight_gradient.copy_((inputs * gradient).sum(dim=1).unsqueeze(-1))
            else:
                layer.weight_gradient.copy_(torch.bmm(inputs.transpose(1, 2), gradient))
            if index:
                below = (
                    gradient * layer.weight.transpose(1, 2)
                    if narrow
                    else torch.bmm(gradient, layer.weight.transpose(1, 2))
                )
                gradient = _times_slope(self._activation, below, inputs)


@dataclass
class MemberNetworks:
    """The networks of a range of members."""

    policy: StackedPerceptron
    value: StackedPerceptron
    log_std: Tensor
    """Shape: (members, num_actions), a view. Logarithm of the exploration's standard deviation, the same in every state."""
    log_std_gradient: Tensor


class StackedNetworks:
    """Separate policy and value networks of K members, their parameters and gradients."""

    def __init__(
        self,
        members: int,
        num_observations: int,
        num_actions: int,
        hidden_sizes: Sequence[int],
        activation: Activation,
        device: torch.device | str,
    ) -> None:
        self.policy_sizes = (num_observations, *hidden_sizes, num_actions)
        self.value_sizes = (num_observations, *hidden_sizes, 1)
        self.num_actions = num_actions
        self.activation: Activation = activation
        self._offsets: dict[str, tuple[int, tuple[int, ...]]] = {}
        size = 0
        for name, shape in self._shapes():
            self._offsets[name] = (size, shape)
            size += math.prod(shape)
        padded = math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        self.parameters = torch.zeros(members, padded, device=device)
        """Shape: (K, P); a member is a row."""
        self.gradients = torch.zeros_like(self.parameters)

    def _shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        shapes: list[tuple[str, tuple[int, ...]]] = []
        for network, sizes in (("policy", self.policy_sizes), ("value", self.value_sizes)):
            for index in range(len(sizes) - 1):
                shapes.append((f"{network}.{index}.weight", (sizes[index], sizes[index + 1])))
                shapes.append((f"{network}.{index}.bias", (1, sizes[index + 1])))
        shapes.append(("log_std", (self.num_actions,)))
        return shapes

    def initialize(self, member: int, seed: int, action_std: float) -> None:
        """Fresh parameters of one member: orthogonal weights, zero biases, a policy that starts near zero.

        Drawn on the CPU, so that they are the same on every device.
        """
        generator = torch.Generator().manual_seed(seed)
        row = self.parameters[member]
        row.zero_()
        for network, sizes in (("policy", self.policy_sizes), ("value", self.value_sizes)):
            for index in range(len(sizes) - 1):
                last = index == len(sizes) - 2
                gain = (_POLICY_HEAD_GAIN if network == "policy" else 1.0) if last else math.sqrt(2.0)
                weight = torch.empty(sizes[index], sizes[index + 1])
                torch.nn.init.orthogonal_(weight, gain, generator)
                self._view(self.parameters, f"{network}.{index}.weight")[member] = weight.to(row.device)
        self._view(self.parameters, "log_std")[member] = math.log(action_std)

    def members(self, first: int, end: int) -> MemberNetworks:
        """The networks of the members `first` to `end` (not included), as views."""
        parameters, gradients = self.parameters[first:end], self.gradients[first:end]

        def perceptron(network: str, sizes: Sequence[int]) -> StackedPerceptron:
            layers = []
            for index in range(len(sizes) - 1):
                weight, bias = f"{network}.{index}.weight", f"{network}.{index}.bias"
                views = [self._view(tensor, name) for tensor in (parameters, gradients) for name in (weight, bias)]
                layers.append(_Layer(*views))
            return StackedPerceptron(layers, self.activation)

        return MemberNetworks(
            perceptron("policy", self.policy_sizes),
            perceptron("value", self.value_sizes),
            self._view(parameters, "log_std"),
            self._view(gradients, "log_std"),
        )

    def member_tensors(self, member: int) -> dict[str, Tensor]:
        """Copies of one member's parameters by name."""
        return {name: self._view(self.parameters, name)[member].clone() for name in self._offsets}

    def rescale_values(self, members: int, scale: Tensor, shift: Tensor) -> None:
        """Make the leading members' value networks give `scale * value + shift` from here on. Shape of each: (members, 1)."""
        last = len(self.value_sizes) - 2
        weight = self._view(self.parameters[:members], f"value.{last}.weight")
        bias = self._view(self.parameters[:members], f"value.{last}.bias")
        weight.mul_(scale.unsqueeze(-1))
        bias.mul_(scale.unsqueeze(-1)).add_(shift.unsqueeze(-1))

    def _view(self, tensor: Tensor, name: str) -> Tensor:
        """The entries called `name` of every row. Shape: (rows, *shape)."""
        offset, shape = self._offsets[name]
        return tensor[:, offset : offset + math.prod(shape)].unflatten(1, shape)
