"""Random numbers that belong to an environment's row: the same whatever slot it is in and whoever its neighbours are."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

# Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators": SplitMix64's increment and mixer, here
# used as a hash of (seed, counter), so that a row's n-th number depends on nothing but its seed and n.
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


class RowRandom:
    """One counter-based stream of random numbers for each of `num_envs` rows."""

    def __init__(self, num_envs: int, device: torch.device | str, seed: int = 0) -> None:
        self._seeds = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._counters = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self.reseed(
            torch.arange(num_envs, device=device), torch.full((num_envs,), seed, dtype=torch.int64, device=device)
        )

    def reseed(self, env_ids: Tensor, seeds: Tensor) -> None:
        """Start the rows `env_ids` (int64, any length) anew. Rows with equal seeds differ by their place in the call."""
        place = torch.arange(len(env_ids), dtype=torch.int64, device=self._seeds.device)
        self._seeds[env_ids] = _hash(_hash(seeds.to(self._seeds) * _INCREMENT + 1) + place * _INCREMENT)
        self._counters[env_ids] = 0

    def row_state(self, env_ids: Tensor) -> dict[str, Tensor]:
        """Where the streams of the rows `env_ids` are."""
        return {"seeds": self._seeds[env_ids].clone(), "counters": self._counters[env_ids].clone()}

    def load_row_state(self, env_ids: Tensor, state: Mapping[str, Tensor]) -> None:
        """Go on with streams where `row_state` found them."""
        self._seeds[env_ids] = state["seeds"].to(self._seeds)
        self._counters[env_ids] = state["counters"].to(self._counters)

    def counters(self) -> Tensor:
        """How many numbers each row has drawn, a copy. Shape: (num_envs,), int64."""
        return self._counters.clone()

    def set_counters(self, counters: Tensor) -> None:
        """Go back, or on, to where `counters` found each row's stream."""
        self._counters.copy_(counters)

    def uniform(self, env_ids: Tensor, count: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """`count` fresh numbers in [low, high) for each row of `env_ids`. Shape: `(len(env_ids), count)`, float32."""
        offsets = torch.arange(1, count + 1, dtype=torch.int64, device=self._seeds.device)
        counters = self._counters[env_ids].unsqueeze(-1) + offsets
        self._counters[env_ids] += count
        bits = _hash(self._seeds[env_ids].unsqueeze(-1) + counters * _INCREMENT)
        unit = _shift_right(bits, 64 - _MANTISSA_BITS).to(torch.float32) * 2.0**-_MANTISSA_BITS
        return low + (high - low) * unit

    def normal(self, env_ids: Tensor, count: int, std: float = 1.0) -> Tensor:
        """`count` Gaussian numbers of mean 0 for each row (Box and Muller 1958). Shape: `(len(env_ids), count)`, float32."""
        pair = self.uniform(env_ids, 2 * count)
        radius = torch.sqrt(-2.0 * torch.log1p(-pair[:, :count]))
        return std * radius * torch.cos(2.0 * torch.pi * pair[:, count:])
