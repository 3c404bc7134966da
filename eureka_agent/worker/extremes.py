"""States that few recorded transitions show: rare, extreme and impossible values of variables."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.task import PREVIOUS_PREFIX, RANGE_TOLERANCE, WINDOW_SUFFIX, Variable

_PLAUSIBLE = 10.0
_PLAUSIBLE_BY_UNIT = {
    "1": 5.0,
    "rad": 6.3,
    "rad/s": 50.0,
    "m/s^2": 100.0,
    "m/s²": 100.0,
    "N": 1e3,
    "N·m": 1e2,
    "N*m": 1e2,
    "N m": 1e2,
    "Nm": 1e2,
}
"""Magnitude that a variable without a range can reach in some task, by unit."""
_RECORDED_FACTOR = 5.0
"""A trained policy reaches this multiple of random actions' magnitudes, where that is more."""
_BROKEN = 1e3
_BROKEN_BY_UNIT = {"1": 1e1, "N": 1e4, "N·m": 1e4, "N*m": 1e4, "N m": 1e4, "Nm": 1e4}
"""Magnitude that only broken physics reaches."""
_UNIT_TOLERANCE = 1e-3
_COUPLED = 0.25
"""Variables are one quantity if their difference spreads less than this part of either."""
_ROWS_OF_AN_EXTREME = 4
_SHOWN = 6
"""Entries of a drawn value that its label shows."""
_DRAWN_ROWS = 32
"""Drawn rows of each quantity, spread evenly."""


@dataclass(frozen=True)
class ExtremeStates:
    """Recorded rows with one quantity, or all of them, set to an extreme value."""

    values: dict[str, Tensor]
    """By argument name, shape (rows, *variable.shape)."""
    labels: tuple[str, ...]
    """Quantity and value, by row."""
    beyond: tuple[bool, ...]
    """True for rows that only broken physics reaches."""

    def joined(self, other: ExtremeStates) -> ExtremeStates:
        values = {name: torch.cat([self.values[name], other.values[name]]) for name in self.values}
        return ExtremeStates(values, self.labels + other.labels, self.beyond + other.beyond)


@dataclass(frozen=True)
class _Level:
    """One value for a quantity; for a direction the signed number of its axis, from 1."""

    value: float
    words: str
    beyond: bool = False


def extreme_states(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> ExtremeStates:
    """Set each quantity to zero, its limits and values of broken physics; then all at once. A limit
    is the variable's range, or a magnitude by unit and recorded values. Coupled quantities move
    together; directions and quaternions keep length 1."""
    values: dict[str, list[Tensor]] = {name: [] for name in arguments}
    labels: list[str] = []
    beyond: list[bool] = []
    rows = torch.linspace(0, len(next(iter(recorded.values()))) - 1, _ROWS_OF_AN_EXTREME).long()
    base = {name: recorded[name][rows] for name in arguments}
    windows = frozenset(name for name in arguments if _quantity(name, variables)[1])
    groups = _groups(recorded, arguments, variables)
    levels = {
        group: _levels(
            _newest(group[0], recorded, windows),
            variables[group[0].removeprefix(PREVIOUS_PREFIX)],
        )
        for group in groups
    }

    def add(changed: Mapping[tuple[str, ...], _Level], label: str, is_beyond: bool) -> None:
        state = dict(base)
        for group, level in changed.items():
            variable = variables[group[0].removeprefix(PREVIOUS_PREFIX)]
            state |= _at(level, group, base, variable, windows)
        for name in arguments:
            values[name].append(state[name])
        labels.extend([label] * _ROWS_OF_AN_EXTREME)
        beyond.extend([is_beyond] * _ROWS_OF_AN_EXTREME)

    for group in groups:
        name = " and ".join(map(repr, group))
        for level in levels[group]:
            variable = variables[group[0].removeprefix(PREVIOUS_PREFIX)]
            what = level.words or f"{level.value:g}{_unit(variable)}"
            add({group: level}, f"{name} {'is' if len(group) == 1 else 'are'} {what}", level.beyond)
    for index, words in enumerate(
        ("0", "at its lower limit", "at its upper limit", "far below", "far above")
    ):
        all_at_once = {
            group: each[index if index < len(each) else index - 2] for group, each in levels.items()
        }
        add(all_at_once, f"every variable is {words}", True)
    return ExtremeStates(
        {name: torch.cat(parts) for name, parts in values.items()}, tuple(labels), tuple(beyond)
    )


def drawn_states(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> ExtremeStates:
    """Set each quantity to values between its limits. Where physics can leave a declared range,
    they go as far beyond it as an environment may. Flags are 0 and 1 in turn, as an episode can end
    in any state."""
    generator = torch.Generator().manual_seed(0)
    windows = frozenset(name for name in arguments if _quantity(name, variables)[1])
    groups = _groups(recorded, arguments, variables)
    flags = [
        group
        for group in groups
        if variables[group[0].removeprefix(PREVIOUS_PREFIX)].range == (0.0, 1.0)
        and recorded[group[0]].dim() == 1
        and not recorded[group[0]].frac().any()
    ]
    states: list[dict[str, Tensor]] = []
    labels: list[str] = []
    for group in groups:
        rows = torch.randint(len(recorded[group[0]]), (_DRAWN_ROWS,), generator=generator)
        state = {name: recorded[name][rows] for name in arguments}
        variable = variables[group[0].removeprefix(PREVIOUS_PREFIX)]
        known = _newest(group[0], recorded, windows)
        state |= _drawn(group, state, known, variable, windows, generator)
        values = _newest(group[0], state, windows)
        places = values.reshape(_DRAWN_ROWS, -1)[:, 0].argsort().argsort()
        for flag in flags:  # in turn, so that any band of values has both
            if flag != group:
                turn = (places + torch.randint(2, (1,), generator=generator)) % 2
                state |= _moved(turn.float(), flag, state, windows, (0.0, 1.0))
        states.append(state)
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


def _drawn(
    group: Sequence[str],
    base: Mapping[str, Tensor],
    recorded: Tensor,
    variable: Variable,
    windows: Collection[str],
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Draw the first of a group. `recorded`: values of the first, which show what kind it is."""
    levels = _levels(recorded, variable)
    shape = (_DRAWN_ROWS, *recorded.shape[1:])
    if levels[0].words:  # a direction
        drawn = torch.nn.functional.normalize(torch.randn(shape, generator=generator), dim=-1)
        return {name: _beside(drawn, name, windows).expand_as(base[name]) for name in group}
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
        return _moved(drawn.round(), group, base, windows, (low, high))
    # a trained policy moves faster: what was a step before goes away from it, or comes nearer
    stretch = _RECORDED_FACTOR * torch.rand(_DRAWN_ROWS, generator=generator)
    first = _newest(group[0], base, windows)
    apart = {}
    for name in group:
        known = _beside(first, name, windows)
        apart[name] = known + stretch.view(-1, *[1] * (known.dim() - 1)) * (base[name] - known)
    return _moved(drawn, group, apart, windows, (low, high))


def _at(
    level: _Level,
    group: Sequence[str],
    base: Mapping[str, Tensor],
    variable: Variable,
    windows: Collection[str],
) -> dict[str, Tensor]:
    """Set a group to a level."""
    if level.words:  # a direction
        axes = {name: torch.zeros_like(base[name]) for name in group}
        for axis in axes.values():
            axis[..., abs(int(level.value)) - 1] = math.copysign(1.0, level.value)
        return axes
    value = torch.full_like(_newest(group[0], base, windows), level.value)
    return _moved(value, group, base, windows, variable.range or (-math.inf, math.inf))


def _moved(
    value: Tensor,
    group: Sequence[str],
    base: Mapping[str, Tensor],
    windows: Collection[str],
    limits: tuple[float, float],
) -> dict[str, Tensor]:
    """Set the first of a group to a value; the others, and the earlier values of a window, keep
    their difference to it."""
    first = _newest(group[0], base, windows)
    return {
        name: (_beside(value, name, windows) + (base[name] - _beside(first, name, windows))).clamp(
            *limits
        )
        for name in group
    }


def _beside(value: Tensor, name: str, windows: Collection[str]) -> Tensor:
    """A value in a shape that goes with an argument's."""
    return value.unsqueeze(1) if name in windows else value


def _newest(name: str, values: Mapping[str, Tensor], windows: Collection[str]) -> Tensor:
    """The values of an argument, of a window those of its last step."""
    return values[name][:, -1] if name in windows else values[name]


def _quantity(name: str, variables: Mapping[str, Variable]) -> tuple[str, bool]:
    """The variable whose values an argument has, and whether it is that variable's window."""
    name = name.removeprefix(PREVIOUS_PREFIX)
    stem = name.removesuffix(WINDOW_SUFFIX)
    is_window = stem != name and stem in variables and variables[stem].window > 0
    return (stem, True) if is_window else (name, False)


def _groups(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> list[tuple[str, ...]]:
    """Group the arguments that move together."""
    groups: list[list[str]] = []
    for name in arguments:
        quantity = _quantity(name, variables)[0]
        home = next(
            (
                group
                for group in groups
                if quantity == _quantity(group[0], variables)[0]
                or _move_together(recorded[name], recorded[group[0]])
            ),
            None,
        )
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return [tuple(group) for group in groups]


def _move_together(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape:
        return False
    spread = torch.minimum(one.std(dim=0), two.std(dim=0))
    return bool(((one - two).std(dim=0) < _COUPLED * spread).all())


def _levels(values: Tensor, variable: Variable) -> list[_Level]:
    """Zero, lower and upper limit, and without a range two levels beyond."""
    if values.dim() > 1 and bool(((values.norm(dim=-1) - 1.0).abs() < _UNIT_TOLERANCE).all()):
        return [
            level
            for axis in range(values.shape[-1])
            for level in (
                _Level(axis + 1, f"along axis {axis}"),
                _Level(-axis - 1, f"against axis {axis}"),
            )
        ]
    if variable.range is not None:
        low, high = variable.range
        return [_Level(value, "") for value in (min(max(0.0, low), high), low, high)]
    most = max(
        _PLAUSIBLE_BY_UNIT.get(variable.unit, _PLAUSIBLE),
        _RECORDED_FACTOR * values.abs().max().item(),
    )
    broken = max(_BROKEN_BY_UNIT.get(variable.unit, _BROKEN), most)
    # a distance, the magnitude of a force, a count that random actions leave at 0: never negative
    low = -most if values.min() < 0.0 else 0.0
    high = most if values.max() > 0.0 or not values.any() else 0.0
    plausible = [_Level(value, "") for value in (0.0, low, high)]
    return [*plausible, *(_Level(value, "", beyond=True) for value in (-broken, broken))]
