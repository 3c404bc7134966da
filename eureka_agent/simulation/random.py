"""Random streams of an environment's rows, independent of the slot and of the neighbours."""

from __future__ import annotations

import math

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

# SplitMix64's increment and mixer (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
# generators"), used as a hash of (seed, counter): a row's n-th number depends on its seed and n
# alone.
_INCREMENT = -0x61C8864680B583EB
_MIX_1 = -0x40A7B892E31B1A47
_MIX_2 = -0x6B2FB644ECCEEE15
_MANTISSA_BITS = 24


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """Logical right shift of int64 (torch's `>>` keeps the sign)."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _hash(value: Tensor) -> Tensor:
    value = (value ^ _shift_right(value, 30)) * _MIX_1
    value = (value ^ _shift_right(value, 27)) * _MIX_2
    return value ^ _shift_right(value, 31)


def _hash_on_cpu(bits: NDArray[numpy.uint64]) -> NDArray[numpy.uint64]:
    """`_hash` in numpy, whose unsigned integers need fewer and faster operations for few rows."""
    bits = (bits ^ (bits >> _SHIFTS[0])) * _UNSIGNED_MIXERS[0]
    bits = (bits ^ (bits >> _SHIFTS[1])) * _UNSIGNED_MIXERS[1]
    return bits ^ (bits >> _SHIFTS[2])


_SHIFTS = tuple(numpy.uint64(bits) for bits in (30, 27, 31))
_UNSIGNED_MIXERS = tuple(numpy.uint64(mixer % 2**64) for mixer in (_MIX_1, _MIX_2))
_UNSIGNED_INCREMENT = numpy.uint64(_INCREMENT % 2**64)
_SURPLUS_BITS = numpy.uint64(64 - _MANTISSA_BITS)


class RowRandom:
    """A counter-based stream of random numbers for each of `num_envs` rows."""

    def __init__(self, num_envs: int, device: torch.device | str, seed: int = 0) -> None:
        self._seeds = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._counters = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._on_cpu = self._seeds.device.type == "cpu"
        if self._on_cpu:
            self._unsigned = [
                values.numpy().view(numpy.uint64) for values in (self._counters, self._seeds)
            ]
        self.reseed(
            torch.arange(num_envs, device=device),
            torch.full((num_envs,), seed, dtype=torch.int64, device=device),
        )

    def reseed(self, env_ids: Tensor, seeds: Tensor) -> None:
        """Restart rows `env_ids` (int64). Equal seeds differ by their place in the call."""
        place = torch.arange(len(env_ids), dtype=torch.int64, device=self._seeds.device)
        first = _hash(seeds.to(self._seeds) * _INCREMENT + 1)
        self._seeds[env_ids] = _hash(first + place * _INCREMENT)
        self._counters[env_ids] = 0

    def row_tensors(self) -> dict[str, Tensor]:
        """Live seeds and counts of numbers drawn, one per row: all of a stream's state."""
        return {"seeds": self._seeds, "counters": self._counters}

    def uniform(self, env_ids: Tensor, count: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Draw `count` numbers in [low, high) per row. Shape: (len(env_ids), count), float32."""
        draw = self._mantissas_on_cpu if self._on_cpu else self._mantissas
        mantissas = draw(env_ids, count)
        unit = mantissas.to(torch.float32).mul_(2.0**-_MANTISSA_BITS)
        return unit if (low, high) == (0.0, 1.0) else low + (high - low) * unit

    def normal(self, env_ids: Tensor, count: int, std: float = 1.0) -> Tensor:
        """Draw `count` Gaussian numbers of mean 0. Shape: (len(env_ids), count), float32."""
        return gaussian(self.uniform(env_ids, count), std)

    def _mantissas(self, env_ids: Tensor, count: int) -> Tensor:
        """The next `count` integers of 24 bits for each row, int64."""
        offsets = torch.arange(1, count + 1, dtype=torch.int64, device=self._seeds.device)
        counters = self._counters.index_select(0, env_ids)
        self._counters.index_copy_(0, env_ids, counters + count)
        seeds = self._seeds.index_select(0, env_ids).unsqueeze(-1)
        numbers = (counters.unsqueeze(-1) + offsets).mul_(_INCREMENT).add_(seeds)
        return _shift_right(_hash(numbers), 64 - _MANTISSA_BITS)

    def _mantissas_on_cpu(self, env_ids: Tensor, count: int) -> Tensor:
        """`_mantissas` in numpy, which needs fewer operations for a row or two."""
        ids = env_ids.numpy()
        counters, seeds = self._unsigned
        used = counters[ids]
        counters[ids] = used + numpy.uint64(count)
        steps = numpy.arange(1, count + 1, dtype=numpy.uint64)
        numbers = (used[:, None] + steps) * _UNSIGNED_INCREMENT
        bits = _hash_on_cpu(numbers + seeds[ids][:, None]) >> _SURPLUS_BITS
        return torch.from_numpy(bits.view(numpy.int64))


def gaussian(uniform: Tensor, std: float = 1.0) -> Tensor:
    """Gaussian numbers by inversion of uniform ones; an interval's middle keeps 0 finite."""
    return torch.erfinv((2.0 * uniform).add_(2.0**-_MANTISSA_BITS - 1.0)).mul_(math.sqrt(2.0) * std)
