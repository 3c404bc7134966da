"""RowRandom against SplitMix64 in plain Python integers, and its statistics."""

from __future__ import annotations

from statistics import NormalDist

import numpy
import pytest
import torch

from eureka_agent.simulation.row_parameters import RowRandom, _hash, _hash_on_cpu, gaussian

MASK = (1 << 64) - 1
# Steele, Lea and Flood 2014: the golden-ratio increment and the two multipliers of the mixer,
# unsigned
INCREMENT, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * MIX_1) & MASK
    value = ((value ^ (value >> 27)) * MIX_2) & MASK
    return value ^ (value >> 31)


def reference_uniforms(seed: int, place: int, count: int) -> list[float]:
    """The first numbers of the row at `place` of a reseeding call, with 24 bits each."""
    row_seed = mixed((mixed((seed * INCREMENT + 1) & MASK) + place * INCREMENT) & MASK)
    return [
        (mixed((row_seed + index * INCREMENT) & MASK) >> 40) / 2**24
        for index in range(1, count + 1)
    ]


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**40 + 7])
def test_numbers_are_those_of_integer_arithmetic(seed: int) -> None:
    random = RowRandom(3, "cpu", seed)
    numbers = random.uniform(torch.arange(3), 5)
    for row in range(3):
        assert numbers[row].tolist() == reference_uniforms(seed, row, 5)


def test_the_hash_of_other_devices_gives_the_bits_of_the_cpus() -> None:
    values = torch.tensor([[0, 1, -1], [2**63 - 1, -(2**63), 6457827717110365317]])
    expected = [[mixed(value & MASK) for value in row] for row in values.tolist()]
    assert [[value & MASK for value in row] for row in _hash(values).tolist()] == expected
    assert _hash_on_cpu(values.numpy().view(numpy.uint64)).tolist() == expected


def test_a_devices_stream_is_the_cpus() -> None:
    on_cpu, on_device = RowRandom(5, "cpu", 3), RowRandom(5, "cpu", 3)
    rows = torch.tensor([4, 0, 2])
    for count in (3, 1, 7):
        assert torch.equal(on_device._mantissas(rows, count), on_cpu._mantissas_on_cpu(rows, count))
    assert torch.equal(on_device.row_tensors()["counters"], on_cpu.row_tensors()["counters"])


def test_stream_does_not_depend_on_slot_neighbours_or_call_sizes() -> None:
    in_front, behind = RowRandom(1, "cpu"), RowRandom(9, "cpu")
    in_front.reseed(torch.tensor([0]), torch.tensor([77]))
    behind.reseed(torch.tensor([6]), torch.tensor([77]))
    behind.uniform(torch.tensor([0, 1, 8]), 4)
    expected = in_front.uniform(torch.tensor([0]), 6)[0]
    first = behind.uniform(torch.tensor([8, 6]), 2)[1]
    second = behind.uniform(torch.tensor([6]), 4)[0]
    assert torch.equal(torch.cat((first, second)), expected)


def test_normal_numbers_are_quantiles_of_the_uniform_ones() -> None:
    rows = torch.tensor([0, 2])
    uniform = RowRandom(3, "cpu", 11).uniform(rows, 7)
    normal = RowRandom(3, "cpu", 11).normal(rows, 7, std=0.5)
    distribution = NormalDist(0.0, 0.5)
    expected = [
        [distribution.inv_cdf(number + 2**-25) for number in row] for row in uniform.tolist()
    ]
    torch.testing.assert_close(normal, torch.tensor(expected), rtol=1e-4, atol=1e-6)


def test_the_ends_of_the_uniform_numbers_are_finite_normal_ones() -> None:
    # 5.42 is the quantile of 1 - 2⁻²⁵
    assert gaussian(torch.tensor([0.0, 1.0 - 2**-24])).tolist() == pytest.approx(
        [-5.42, 5.42], abs=0.01
    )


def test_a_stream_goes_on_in_another_row() -> None:
    taken, put = RowRandom(3, "cpu", 1), RowRandom(2, "cpu", 2)
    taken.uniform(torch.tensor([2]), 5)
    for name, value in put.row_tensors().items():
        value[0] = taken.row_tensors()[name][2]
    expected = taken.uniform(torch.tensor([2]), 4)
    assert torch.equal(put.uniform(torch.tensor([0]), 4), expected)
