"""Random streams of an environment's rows, independent of slot and neighbours; and values of its
parameters, one per row, drawn anew for each episode."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.parameters import Distribution
from eureka_agent.task import Parameter

ACTION_DELAY = "action_delay"
"""Parameter of any environment: control steps by which actions arrive late, rounded."""
_CHANCES = 2
_STREAM = 0x2545F4914F6CDD1D
"""Mixed into seeds, so that parameters have random streams of their own."""

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
            both = (self._counters, self._seeds)
            self._unsigned = [values.numpy().view(numpy.uint64) for values in both]
        rows = torch.arange(num_envs, device=device)
        self.reseed(rows, torch.full_like(rows, seed))

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


class RowParameters:
    """Values and distributions of the rows. A stream of its own per row gives its numbers: start
    states are the same whatever the parameters are."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        num_envs: int,
        num_actions: int,
        device: torch.device,
        seed: int,
    ) -> None:
        """All rows have the defaults."""
        self._places = {parameter.name: place for place, parameter in enumerate(parameters)}
        defaults = [float(parameter.default) for parameter in parameters]
        self._defaults = torch.tensor(defaults, device=device).unsqueeze(1)
        # a parameter's values lie side by side
        self._values = self._defaults.repeat(1, num_envs)
        self._low = self._values.clone()
        self._high = self._values.clone()
        self.chances = torch.zeros(_CHANCES, num_envs, device=device)
        """Uniform numbers of the episode, for the time and direction of a push."""
        self._random = RowRandom(num_envs, device, seed ^ _STREAM)
        self.values = {name: self._values[place] for name, place in self._places.items()}
        """Live values by parameter. Shape of each: (num_envs,)."""
        self.are_drawn = False
        """True once a row has had a distribution."""
        longest = parameters[self._places[ACTION_DELAY]].high if self._delays else -1
        self._past_actions = torch.zeros(num_envs, round(longest) + 1, num_actions, device=device)
        """The newest action first."""

    @property
    def _delays(self) -> bool:
        return ACTION_DELAY in self._places

    def set(self, env_ids: Tensor, distribution: Distribution) -> None:
        """Have the rows `env_ids` draw from `distribution` from their next reset on."""
        for bounds, end in ((self._low, 0), (self._high, 1)):
            bounds[:, env_ids] = self._defaults
            for name, ends in distribution.items():
                bounds[self._places[name], env_ids] = float(ends[end])
        self.are_drawn = self.are_drawn or bool(distribution)

    def draw(self, env_ids: Tensor) -> None:
        if not self._places:
            return
        # always drawn, so that a row's numbers do not depend on its neighbours' distributions
        numbers = self._random.uniform(env_ids, len(self._places) + _CHANCES).T
        if not self.are_drawn:
            return
        low, high = self._low[:, env_ids], self._high[:, env_ids]
        self._values[:, env_ids] = low + (high - low) * numbers[_CHANCES:]
        self.chances[:, env_ids] = numbers[:_CHANCES]
        self._past_actions.index_fill_(0, env_ids, 0.0)

    def delayed(self, actions: Tensor) -> Tensor:
        """Actions that arrive in this step, 0 before an episode. Shape: (num_envs, num_actions)."""
        if not (self._delays and self.are_drawn):
            return actions
        self._past_actions = torch.cat((actions.unsqueeze(1), self._past_actions[:, :-1]), dim=1)
        steps = self.values[ACTION_DELAY].round().to(torch.int64)
        index = steps.view(-1, 1, 1).expand(-1, 1, actions.shape[1])
        return self._past_actions.gather(1, index).squeeze(1)

    def reseed(self, env_ids: Tensor, seeds: Tensor) -> None:
        """Restart the streams of the rows `env_ids`. `seeds`: int64, shape (len(env_ids),)."""
        self._random.reseed(env_ids, seeds ^ _STREAM)

    def note_loaded(self) -> None:
        """Look for distributions and values in rows that were written into `row_tensors`."""
        tensors = (self._low, self._high, self._values)
        differ = [bool((value != self._defaults).any()) for value in tensors]
        self.are_drawn = self.are_drawn or any(differ)

    def row_tensors(self) -> dict[str, Tensor]:
        """Live views of all state, with a row for each environment; none without parameters."""
        if not self._places:
            return {}
        own = {"values": self._values.T, "low": self._low.T, "high": self._high.T}
        own |= {"chances": self.chances.T, **self._random.row_tensors()}
        if self._delays:
            own["past_actions"] = self._past_actions
        return {f"parameters.{name}": value for name, value in own.items()}
