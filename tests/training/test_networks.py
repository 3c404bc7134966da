"""Stacked networks against separate modules, and running statistics against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from eureka_agent.training.distributions import Gaussian
from eureka_agent.training.networks import (
    Activation,
    ObservationStatistics,
    ReturnStatistics,
    StackedNetworks,
    with_ones,
)

SIZES = (5, 8, 7)
MEMBERS = 3


def stacked(activation: Activation, outputs: int = 2) -> StackedNetworks:
    networks = StackedNetworks(MEMBERS, SIZES[0], Gaussian(outputs), SIZES[1:], activation, "cpu")
    for member in range(MEMBERS):
        networks.initialize(member, seed=member, distribution_parameter=math.log(0.5))
    # biases start at zero, where a mistake with them would not show
    networks.parameters += 0.05 * torch.randn(
        networks.parameters.shape, generator=torch.Generator().manual_seed(0)
    )
    return networks


def module(
    networks: StackedNetworks, member: int, network: str, activation: Activation
) -> nn.Sequential:
    """The same perceptron out of torch's own parts."""
    tensors = networks.member_tensors(member)
    layers: list[nn.Module] = []
    for index in range(3):
        weight, bias = tensors[f"{network}.{index}.weight"], tensors[f"{network}.{index}.bias"]
        linear = nn.Linear(*weight.shape)
        linear.weight.data, linear.bias.data = weight.T.clone(), bias[0].clone()
        layers += [linear, nn.ELU() if activation == "elu" else nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("activation", ["elu", "tanh"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_outputs_and_gradients_equal_those_of_separate_modules(
    activation: Activation, outputs: int
) -> None:
    networks = stacked(activation, outputs)
    views = networks.members(0, MEMBERS)
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(MEMBERS, 2, 6, SIZES[0], generator=generator)
    upstream = torch.randn(MEMBERS, 2, 6, 2, generator=generator)
    upstream[:, 0, :, outputs:] = (
        0.0  # what is beyond the actions, or beyond the value, means nothing
    )
    upstream[:, 1, :, 1:] = 0.0
    result = views.both.forward(with_ones(inputs).flatten(0, 1))
    views.both.backward(result, upstream.flatten(0, 1))
    torch.testing.assert_close(
        views.outputs(with_ones(inputs[:, 0])), result[-1].view(upstream.shape)[:, 0, :, :outputs]
    )
    torch.testing.assert_close(
        views.values(with_ones(inputs[:, 1])), result[-1].view(upstream.shape)[:, 1, :, 0]
    )
    for index, (name, width) in enumerate((("policy", outputs), ("value", 1))):
        found = result[-1].view(upstream.shape)[:, index]
        for member in range(MEMBERS):
            reference = module(networks, member, name, activation)
            expected = reference(inputs[member, index])
            torch.testing.assert_close(found[member, :, :width], expected)
            expected.backward(upstream[member, index, :, :width])
            gradients = {
                name: tensor[member] for name, tensor in networks._named(networks.gradients).items()
            }
            linears = [layer for layer in reference if isinstance(layer, nn.Linear)]
            for number, linear in enumerate(linears):
                assert linear.weight.grad is not None
                assert linear.bias.grad is not None
                torch.testing.assert_close(
                    gradients[f"{name}.{number}.weight"], linear.weight.grad.T
                )
                torch.testing.assert_close(gradients[f"{name}.{number}.bias"][0], linear.bias.grad)


def test_rows_are_padded_to_whole_simd_vectors_and_start_from_the_seed() -> None:
    networks = StackedNetworks(2, 5, Gaussian(2), (8, 7), "elu", "cpu")
    # policy 5·8+8 + 8·7+7 + 7·2+2 = 127 and log_std 2: 129, padded to a multiple of 64, and as much
    # for the value network
    assert networks.parameters.shape == (2, 384)
    networks.initialize(0, seed=7, distribution_parameter=math.log(0.5))
    networks.initialize(1, seed=7, distribution_parameter=math.log(0.5))
    assert torch.equal(networks.parameters[0], networks.parameters[1])
    networks.initialize(1, seed=8, distribution_parameter=math.log(0.5))
    assert not torch.equal(networks.parameters[0], networks.parameters[1])
    tensors = networks.member_tensors(0)
    # 5 orthogonal rows of length √2
    gram = tensors["policy.0.weight"] @ tensors["policy.0.weight"].T
    torch.testing.assert_close(gram, 2.0 * torch.eye(5))
    assert tensors["log_std"].tolist() == pytest.approx([math.log(0.5)] * 2)


def test_rescaled_value_networks_give_scaled_values() -> None:
    networks = stacked("elu")
    inputs = with_ones(
        torch.randn(MEMBERS, 4, SIZES[0], generator=torch.Generator().manual_seed(2))
    )
    before = networks.members(0, MEMBERS).values(inputs)
    scale, shift = torch.tensor([[2.0], [0.5], [1.0]]), torch.tensor([[1.0], [0.0], [-3.0]])
    networks.rescale_values(MEMBERS, scale, shift)
    after = networks.members(0, MEMBERS).values(inputs)
    torch.testing.assert_close(after, before * scale + shift)


def test_observation_statistics_are_those_of_all_observations_so_far() -> None:
    statistics = ObservationStatistics(3, 4, "cpu")
    generator = torch.Generator().manual_seed(0)
    batches = [
        torch.randn(2, rows, 4, generator=generator) * 3.0 + shift
        for rows, shift in ((10, 5.0), (30, -1.0), (7, 0.0))
    ]
    for batch in batches:
        statistics.update(batch)
    for member in range(2):
        seen = np.concatenate([batch[member].numpy() for batch in batches])
        np.testing.assert_allclose(statistics.mean[member], seen.mean(axis=0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(statistics.variance[member], seen.var(axis=0), rtol=1e-5)
    # the third member took no part
    assert statistics.mean[2].tolist() == [0.0] * 4
    assert statistics.variance[2].tolist() == [1.0] * 4


def test_the_value_head_is_corrected_so_that_values_stay_the_same() -> None:
    statistics = ReturnStatistics(1, "cpu")
    scale, shift = statistics.update(torch.tensor([[1.0, 3.0]]))
    # mean 2, deviation 1; nothing to correct after the first iteration
    assert (statistics.mean.item(), statistics.deviation.item(), scale.item(), shift.item()) == (
        2.0,
        1.0,
        1.0,
        0.0,
    )
    output = 0.7
    value = output * statistics.deviation.item() + statistics.mean.item()
    scale, shift = statistics.update(torch.tensor([[100.0, 300.0]]))
    corrected = output * scale.item() + shift.item()
    assert statistics.mean.item() == 101.0  # mean of 2 and 200, each with half the weight
    np.testing.assert_allclose(
        corrected * statistics.deviation.item() + statistics.mean.item(), value, rtol=1e-5
    )
