"""States that few recorded transitions show: rare, extreme and impossible values of variables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.task import PREVIOUS_PREFIX, RANGE_TOLERANCE, WINDOW_SUFFIX, Variable

_TORQUES = ("N·m", "N*m", "N m", "Nm")
_PLAUSIBLE = 10.0
_PLAUSIBLE_BY_UNIT = {"1": 5.0, "rad": 6.3, "rad/s": 50.0, "m/s^2": 100.0, "m/s²": 100.0, "N": 1e3}
_PLAUSIBLE_BY_UNIT |= dict.fromkeys(_TORQUES, 1e2)
"""Magnitude that a variable without a range can reach in some task, by unit."""
_RECORDED_FACTOR = 5.0
"""A trained policy reaches this multiple of random actions' magnitudes, where that is more."""
_BROKEN = 1e3
_BROKEN_BY_UNIT = {"1": 1e1, **dict.fromkeys(("N", *_TORQUES), 1e4)}
"""Magnitude that only broken physics reaches."""
_UNIT_TOLERANCE = 1e-3
_COUPLED = 0.25
"""Variables are one quantity if their difference spreads less than this part of either."""
_ROWS_OF_AN_EXTREME = 4
_SHOWN = 6
"""Entries of a drawn value that its label shows."""
_DRAWN_ROWS = 32
"""Drawn rows of each quantity, spread evenly."""
_MIXED_ROWS = 4
_MOST_MIXED = 320

Group = tuple[str, ...]
"""Arguments that move together, each the same quantity."""
State = dict[str, Tensor]
"""Values by argument name, shape (rows, *variable.shape)."""


@dataclass(frozen=True)
class ExtremeStates:
    """Recorded rows with one quantity set to an extreme value."""

    values: State
    labels: tuple[str, ...]
    """Quantity and value, by row."""
    beyond: tuple[bool, ...]
    """True for rows that only broken physics reaches."""

    def joined(self, other: ExtremeStates) -> ExtremeStates:
        values = {name: torch.cat([self.values[name], other.values[name]]) for name in self.values}
        return ExtremeStates(values, self.labels + other.labels, self.beyond + other.beyond)

    def batches(self, usual: int) -> Iterator[Tensor]:
        """Rows of batches with some of each extreme, after `usual` rows."""
        for label in dict.fromkeys(self.labels):
            rows = [usual + row for row, each in enumerate(self.labels) if each == label]
            yield torch.tensor([rows[0], 0, usual // 2, usual - 1])
            yield torch.tensor([0, *rows])


def batches_of_drawn(first: int, order: Tensor) -> Iterator[Tensor]:
    """Drawn rows, from `first`, each before others; of very many some."""
    others = order.repeat(_MIXED_ROWS).split(_MIXED_ROWS - 1)
    count = len(order) - first
    for row in range(first, len(order), -(-count // _MOST_MIXED)):
        yield torch.cat([torch.tensor([row]), others[row]])


@dataclass(frozen=True)
class _Level:
    """One value for a quantity; for a direction the signed number of its axis, from 1."""

    value: float
    words: str = ""
    beyond: bool = False


def extreme_states(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> ExtremeStates:
    """Set each quantity to zero, its limits and values of broken physics. A limit is the variable's
    range, or a magnitude by unit and recorded values. Coupled quantities move together; directions
    and quaternions keep length 1."""
    known = _Quantities(recorded, arguments, variables)
    rows = torch.linspace(0, len(next(iter(recorded.values()))) - 1, _ROWS_OF_AN_EXTREME).long()
    base = {name: recorded[name][rows] for name in arguments}
    states: list[State] = []
    labels: list[str] = []
    beyond: list[bool] = []
    for group in known.groups:
        names = f"{' and '.join(map(repr, group))} {'is' if len(group) == 1 else 'are'}"
        for level in known.levels(group):
            states.append(base | known.at(level, group, base))
            what = level.words or f"{level.value:g}{_unit(known.variable(group))}"
            labels += [f"{names} {what}"] * _ROWS_OF_AN_EXTREME
            beyond += [level.beyond] * _ROWS_OF_AN_EXTREME
    joined = {name: torch.cat([state[name] for state in states]) for name in arguments}
    return ExtremeStates(joined, tuple(labels), tuple(beyond))


def drawn_states(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> ExtremeStates:
    """Set each quantity to values between its limits. Where physics can leave a declared range,
    they go as far beyond it as an environment may. Flags are 0 and 1 in turn, as an episode can end
    in any state."""
    generator = torch.Generator().manual_seed(0)
    known = _Quantities(recorded, arguments, variables)
    binary = (each for each in known.groups if known.variable(each).range == (0.0, 1.0))
    scalars = ((each, recorded[each[0]]) for each in binary)
    flags = [each for each, seen in scalars if seen.dim() == 1 and not seen.frac().any()]
    states: list[State] = []
    labels: list[str] = []
    for group in known.groups:
        rows = torch.randint(len(recorded[group[0]]), (_DRAWN_ROWS,), generator=generator)
        state = {name: recorded[name][rows] for name in arguments}
        state |= known.drawn(group, state, generator)
        values = known.newest(group[0], state)
        places = values.reshape(_DRAWN_ROWS, -1)[:, 0].argsort().argsort()
        for flag in flags:  # in turn, so that any band of values has both
            if flag != group:
                turn = (places + torch.randint(2, (1,), generator=generator)) % 2
                state |= known.moved(turn.float(), flag, state, (0.0, 1.0))
        states.append(state)
        variable = known.variable(group)
        low, high = variable.range or (-math.inf, math.inf)
        for row, value in enumerate(values):
            numbers = ", ".join(f"{entry:.3g}" for entry in value.flatten()[:_SHOWN].tolist())
            numbers += ", …" if value.numel() > _SHOWN else ""
            outside = " (outside its range)" if ((value < low) | (value > high)).any() else ""
            others = (flag[0] for flag in flags if flag != group and state[flag[0]][row])
            with_flags = "".join(f", and {flag!r} is 1" for flag in others)
            labels.append(f"{group[0]!r} is {numbers}{_unit(variable)}{outside}{with_flags}")
    joined = {name: torch.cat([state[name] for state in states]) for name in arguments}
    return ExtremeStates(joined, tuple(labels), (False,) * len(labels))


def _unit(variable: Variable) -> str:
    return "" if variable.unit in ("1", "?") else f" {variable.unit}"


class _Quantities:
    """The groups of arguments that move together, and ways to set them."""

    def __init__(
        self,
        recorded: Mapping[str, Tensor],
        arguments: Sequence[str],
        variables: Mapping[str, Variable],
    ) -> None:
        self._recorded = recorded
        self._variables = variables
        stems = {name: name.removeprefix(PREVIOUS_PREFIX) for name in arguments}
        self._windows = frozenset(each for each in stems if self._quantity(each) != stems[each])
        groups: list[list[str]] = []
        for name in arguments:
            for group in groups:
                if self._quantity(name) == self._quantity(group[0]) or _move_together(
                    recorded[name], recorded[group[0]]
                ):
                    group.append(name)
                    break
            else:
                groups.append([name])
        self.groups: list[Group] = [tuple(group) for group in groups]

    def variable(self, group: Group) -> Variable:
        return self._variables[group[0].removeprefix(PREVIOUS_PREFIX)]

    def newest(self, name: str, values: Mapping[str, Tensor]) -> Tensor:
        """The values of an argument, of a window those of its last step."""
        return values[name][:, -1] if name in self._windows else values[name]

    def moved(
        self, value: Tensor, group: Group, base: Mapping[str, Tensor], limits: tuple[float, float]
    ) -> State:
        """Set the first of a group to a value; the others keep their difference to it."""
        first = self.newest(group[0], base)
        apart = {name: base[name] - self._beside(first, name) for name in group}
        return {name: (self._beside(value, name) + apart[name]).clamp(*limits) for name in group}

    def at(self, level: _Level, group: Group, base: Mapping[str, Tensor]) -> State:
        if level.words:  # a direction
            axes = {name: torch.zeros_like(base[name]) for name in group}
            for axis in axes.values():
                axis[..., abs(int(level.value)) - 1] = math.copysign(1.0, level.value)
            return axes
        value = torch.full_like(self.newest(group[0], base), level.value)
        limits = self.variable(group).range or (-math.inf, math.inf)
        return self.moved(value, group, base, limits)

    def drawn(self, group: Group, base: Mapping[str, Tensor], generator: torch.Generator) -> State:
        recorded, variable = self.newest(group[0], self._recorded), self.variable(group)
        levels = self.levels(group)
        shape = (_DRAWN_ROWS, *recorded.shape[1:])
        if levels[0].words:  # a direction
            drawn = torch.nn.functional.normalize(torch.randn(shape, generator=generator), dim=-1)
            return {name: self._beside(drawn, name).expand_as(base[name]) for name in group}
        low, high = levels[1].value, levels[2].value
        whole = not recorded.frac().any()
        if variable.range is not None and _unit(variable) and not whole:
            slack = RANGE_TOLERANCE * (high - low)
            low, high = (
                limit if abs(math.remainder(limit, math.pi)) < _UNIT_TOLERANCE else limit + beyond
                for limit, beyond in ((low, -slack), (high, slack))  # at 0 and pi it is exact
            )
        places = torch.rand(shape, generator=generator).argsort(dim=0)
        part = (places + torch.rand(shape, generator=generator)) / _DRAWN_ROWS
        drawn = low + (high - low) * part
        if variable.range is None:  # denser where most of a training's states are
            drawn = drawn * drawn.abs() / max(-low, high)
        if whole:
            return self.moved(drawn.round(), group, base, (low, high))
        # a trained policy moves faster: what was a step before goes away from it, or comes nearer
        stretch = _RECORDED_FACTOR * torch.rand(_DRAWN_ROWS, generator=generator)
        first = self.newest(group[0], base)
        apart = {}
        for name in group:
            known = self._beside(first, name)
            apart[name] = known + stretch.view(-1, *[1] * (known.dim() - 1)) * (base[name] - known)
        return self.moved(drawn, group, apart, (low, high))

    def levels(self, group: Group) -> list[_Level]:
        """Zero, lower and upper limit, and without a range two levels beyond."""
        values, variable = self.newest(group[0], self._recorded), self.variable(group)
        if values.dim() > 1 and bool(((values.norm(dim=-1) - 1.0).abs() < _UNIT_TOLERANCE).all()):
            sides, axes = ((1, "along"), (-1, "against")), range(values.shape[-1])
            pairs = ((axis, sign, words) for axis in axes for sign, words in sides)
            return [_Level(sign * (axis + 1), f"{word} axis {axis}") for axis, sign, word in pairs]
        if variable.range is not None:
            low, high = variable.range
            return [_Level(value) for value in (min(max(0.0, low), high), low, high)]
        usual = _PLAUSIBLE_BY_UNIT.get(variable.unit, _PLAUSIBLE)
        most = max(usual, _RECORDED_FACTOR * values.abs().max().item())
        broken = max(_BROKEN_BY_UNIT.get(variable.unit, _BROKEN), most)
        # a distance, a force's magnitude, a count that random actions leave at 0: never negative
        low = -most if values.min() < 0.0 else 0.0
        high = most if values.max() > 0.0 or not values.any() else 0.0
        plausible = [_Level(value) for value in (0.0, low, high)]
        return [*plausible, *(_Level(value, beyond=True) for value in (-broken, broken))]

    def _beside(self, value: Tensor, name: str) -> Tensor:
        """A value in a shape that goes with an argument's."""
        return value.unsqueeze(1) if name in self._windows else value

    def _quantity(self, name: str) -> str:
        """The variable whose values, or whose window of values, an argument has."""
        name = name.removeprefix(PREVIOUS_PREFIX)
        stem = name.removesuffix(WINDOW_SUFFIX)
        known = self._variables.get(stem)
        return stem if known is not None and known.window > 0 else name


def _move_together(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape:
        return False
    spread = torch.minimum(one.std(dim=0), two.std(dim=0))
    return bool(((one - two).std(dim=0) < _COUPLED * spread).all())
