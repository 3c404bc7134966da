"""Policy and value networks of K members, stacked: one `[K, P]` tensor of parameters whose strided
views are the layers.

The backward pass is written out: for two small perceptrons it is shorter than what autograd does,
and it writes straight into `[K, P]`. No operation mixes members, and a member's numbers do not
depend on how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from eureka_agent.training.distributions import ActionDistribution

Activation = Literal["elu", "tanh"]

_ALIGNMENT = 64
"""Half a member's row is padded to this many floats, so that every member meets the same SIMD
lanes."""
_LEAST_OUTPUTS = 2
"""A product one wide takes another way through the library for one member than for several, and
rounds differently there."""
_POLICY_HEAD_GAIN = 0.01
_POLICY, _VALUE = "policy", "value"


def activate_(activation: Activation, value: Tensor) -> Tensor:
    """The activation, in place where it can be."""
    if activation == "tanh":
        return value.tanh_()
    # torch's own ELU goes through expm1, which takes six times as long as exp; the difference is
    # below 1e-7
    return torch.maximum(value, value.clamp(max=0.0).exp_().sub_(1.0), out=value)


def _times_slope_(activation: Activation, gradient: Tensor, output: Tensor) -> Tensor:
    """The gradient before the activation from the one after it and the activation's output; in
    place.

    The slope is 1 + min(output, 0) for ELU (torch's `elu_backward` is several times slower), 1 −
    output² for tanh.
    """
    if activation == "elu":
        return gradient.addcmul_(gradient, output.clamp(max=0.0))
    return torch.ops.aten.tanh_backward.grad_input(gradient, output, grad_input=gradient)


class _Layer:
    """Views of an affine map, whose last row is the bias, and of its gradient. Shape of both:
    (members, inputs + 1, outputs)."""

    def __init__(self, affine: Tensor, gradient: Tensor) -> None:
        self.affine, self.gradient = affine, gradient
        self.weight, self.bias = affine[:, :-1], affine[:, -1:]
        self.transposed_weight = self.weight.transpose(1, 2)
        self.weight_gradient, self.bias_gradient = gradient[:, :-1], gradient[:, -1:]


class StackedPerceptron:
    """One perceptron for each of a number of members: views of rows of the parameters."""

    def __init__(self, layers: Sequence[_Layer], activation: Activation) -> None:
        self._layers = tuple(layers)
        self._activation: Activation = activation

    def forward(self, inputs: Tensor) -> list[Tensor]:
        """Outputs of all layers, the inputs first. `inputs`: shape (members, rows, inputs + 1), the
        last column being 1.

        That column makes the first layer, and its gradient, a single product.
        """
        outputs = [inputs]
        for index, layer in enumerate(self._layers):
            value = (
                torch.baddbmm(layer.bias, outputs[-1], layer.weight)
                if index
                else torch.bmm(inputs, layer.affine)
            )
            outputs.append(
                value if index == len(self._layers) - 1 else activate_(self._activation, value)
            )
        return outputs

    def backward(self, outputs: Sequence[Tensor], gradient: Tensor) -> None:
        """Write the parameters' gradients. `outputs` is what `forward` gave, `gradient` the loss's
        by its last entry."""
        for index in reversed(range(1, len(self._layers))):
            layer, inputs = self._layers[index], outputs[index]
            torch.bmm(inputs.transpose(1, 2), gradient, out=layer.weight_gradient)
            torch.sum(gradient, dim=1, keepdim=True, out=layer.bias_gradient)
            gradient = _times_slope_(
                self._activation, torch.bmm(gradient, layer.transposed_weight), inputs
            )
        torch.bmm(outputs[0].transpose(1, 2), gradient, out=self._layers[0].gradient)


@dataclass
class MemberNetworks:
    """The networks of a range of members."""

    policy: StackedPerceptron
    value: StackedPerceptron
    both: StackedPerceptron
    """Policy and value network in turn, as twice as many members: one product where two would be.
    Of a policy's outputs the leading `num_policy_outputs` count, of a value network's the first."""
    num_policy_outputs: int
    distribution_parameters: Tensor
    """Parameters of the actions' distribution, the same in every state. Shape: (members,
    num_parameters), a view."""
    distribution_gradient: Tensor

    def outputs(self, inputs: Tensor) -> Tensor:
        """Outputs for the actions' distribution, shape (members, rows, num_policy_outputs).
        `inputs` as `StackedPerceptron.forward` takes them."""
        return self.policy.forward(inputs)[-1][..., : self.num_policy_outputs]

    def values(self, inputs: Tensor) -> Tensor:
        """Values, shape (members, rows). `inputs` as `StackedPerceptron.forward` takes them."""
        return self.value.forward(inputs)[-1][..., 0]


class StackedNetworks:
    """Separate policy and value networks of K members, their parameters and gradients.

    A member's row has two halves of one layout, the policy's and the value network's, so that the
    rows are also 2K half rows. The two networks' last layers are equally wide; outputs that mean
    nothing stay zero.
    """

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
        """Of both networks."""
        sizes = (num_observations, *hidden_sizes, self.num_outputs)
        self._distribution = distribution
        self.activation: Activation = activation
        self._affine_shapes = [(inputs + 1, outputs) for inputs, outputs in pairwise(sizes)]
        size = sum(math.prod(shape) for shape in self._affine_shapes)
        size += distribution.num_parameters
        self._half = math.ceil(size / _ALIGNMENT) * _ALIGNMENT
        self.parameters = torch.zeros(members, 2 * self._half, device=device)
        """Shape: (K, P); a member is a row."""
        self.gradients = torch.zeros_like(self.parameters)
        self._ranges: dict[tuple[int, int], MemberNetworks] = {}

    def initialize(self, member: int, seed: int, distribution_parameter: float) -> None:
        """Fresh parameters of one member: orthogonal weights, zero biases, a policy whose outputs
        start near zero, and the distribution's own parameters all the same.

        Drawn on the CPU, so that they are the same on every device.
        """
        generator = torch.Generator().manual_seed(seed)
        self.parameters[member] = 0.0
        named = self._named(self.parameters)
        for name, tensor in named.items():
            if name.endswith(".weight"):
                last = name.startswith(f"{_POLICY}.{len(self._affine_shapes) - 1}")
                last_value = name.startswith(f"{_VALUE}.{len(self._affine_shapes) - 1}")
                gain = _POLICY_HEAD_GAIN if last else 1.0 if last_value else math.sqrt(2.0)
                weight = torch.empty(tensor.shape[1:])
                torch.nn.init.orthogonal_(weight, gain, generator)
                tensor[member] = weight.to(tensor.device)
        if self._distribution.parameter:
            named[self._distribution.parameter][member] = distribution_parameter

    def members(self, first: int, end: int) -> MemberNetworks:
        """The networks of the members `first` to `end` (not included), as views."""
        if (first, end) not in self._ranges:
            self._ranges[first, end] = self._views(
                self.parameters[first:end], self.gradients[first:end]
            )
        return self._ranges[first, end]

    def member_tensors(self, member: int) -> dict[str, Tensor]:
        """Copies of one member's parameters by name: `policy.<i>.weight` (inputs, outputs),
        `policy.<i>.bias` (1, outputs) and so on."""
        return {
            name: tensor[member].clone() for name, tensor in self._named(self.parameters).items()
        }

    def member_gradients(self, member: int) -> dict[str, Tensor]:
        """Copies of one member's gradients, named like its parameters."""
        return {
            name: tensor[member].clone() for name, tensor in self._named(self.gradients).items()
        }

    def rescale_values(self, members: int, scale: Tensor, shift: Tensor) -> None:
        """Make the leading members' value networks give `scale * value + shift` from here on. Shape
        of each: (members, 1)."""
        named, last = self._named(self.parameters[:members]), len(self._affine_shapes) - 1
        named[f"{_VALUE}.{last}.weight"].mul_(scale.unsqueeze(-1))
        named[f"{_VALUE}.{last}.bias"].mul_(scale.unsqueeze(-1)).add_(shift.unsqueeze(-1))

    def _views(self, parameters: Tensor, gradients: Tensor) -> MemberNetworks:
        halves = [tensor.view(-1, self._half) for tensor in (parameters, gradients)]

        def perceptron(rows: slice) -> StackedPerceptron:
            affine, gradient = (self._affine(half[rows]) for half in halves)
            return StackedPerceptron(
                [_Layer(*pair) for pair in zip(affine, gradient, strict=True)], self.activation
            )

        return MemberNetworks(
            perceptron(slice(0, None, 2)),
            perceptron(slice(1, None, 2)),
            perceptron(slice(None)),
            self._distribution.num_outputs,
            self._of_distribution(parameters),
            self._of_distribution(gradients),
        )

    def _of_distribution(self, tensor: Tensor) -> Tensor:
        """The distribution's own parameters in rows like those of the parameters, as a view."""
        end = sum(math.prod(shape) for shape in self._affine_shapes)
        return tensor[:, end : end + self._distribution.num_parameters]

    def _affine(self, half: Tensor) -> list[Tensor]:
        """The layers' affine maps in half rows, as views. Shape of each: (half rows, inputs + 1,
        outputs)."""
        views, offset = [], 0
        for shape in self._affine_shapes:
            views.append(half[:, offset : offset + math.prod(shape)].unflatten(1, shape))
            offset += math.prod(shape)
        return views

    def _named(self, tensor: Tensor) -> dict[str, Tensor]:
        """All that counts in rows like those of the parameters, by name, as views. The first
        dimension is the row."""
        named = {}
        for network, half in (
            (_POLICY, tensor[:, : self._half]),
            (_VALUE, tensor[:, self._half :]),
        ):
            for index, affine in enumerate(self._affine(half)):
                last = index == len(self._affine_shapes) - 1
                used = (
                    affine[:, :, : self._distribution.num_outputs if network == _POLICY else 1]
                    if last
                    else affine
                )
                named[f"{network}.{index}.weight"] = used[:, :-1]
                named[f"{network}.{index}.bias"] = used[:, -1:]
        if self._distribution.parameter:
            named[self._distribution.parameter] = self._of_distribution(tensor)
        return named
