"""States to try a reward on: transitions of random actions, and extreme values of variables."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, WINDOW_SUFFIX, Task, Variable
from eureka_agent.training.binding import FitnessFunction
from eureka_agent.training.environment_faults import (
    OBSERVATIONS,
    check_rows,
    environment_code,
    fitness_fault,
    place_of_value,
)

RECORDED_ENVIRONMENTS = 8
RECORDED_STEPS = 40
REHEARSAL_SECONDS = 0.5
CALL_SECONDS = 30.0
"""Timeout of one step or reset of a few environments, on a busy machine."""

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


@dataclass(frozen=True)
class ExtremeStates:
    """Recorded rows with one quantity, or all of them, set to an extreme value."""

    values: dict[str, Tensor]
    """By argument name, shape (rows, *variable.shape)."""
    labels: tuple[str, ...]
    """Quantity and value, by row."""
    beyond: tuple[bool, ...]
    """True for rows that only broken physics reaches."""


@dataclass(frozen=True)
class _Level:
    """One value for a quantity; for a direction the signed number of its axis, from 1."""

    value: float
    words: str
    beyond: bool = False


def record_transitions(
    environment: VecTask, variables: Sequence[Variable], seed: int = 0
) -> dict[str, Tensor]:
    """Record variables and `previous_` ones over `RECORDED_STEPS` random steps of, ideally,
    `RECORDED_ENVIRONMENTS` rows. One row is reset every five steps. Shape of each: (transitions,
    *variable.shape), float32 on the CPU. Raises EnvironmentFaultError for code that raises, hangs
    or breaks its declarations."""
    generator = torch.Generator().manual_seed(seed)
    with _one_call(environment, "a reset"):
        environment.reset()
        before = _checked(environment, environment.read_variables(), "right after a reset")
    recorded: dict[str, list[Tensor]] = {}
    for step in range(RECORDED_STEPS):
        with _one_call(environment, "a step"):
            after = _advance(environment, generator)
        for variable in variables:
            recorded.setdefault(variable.name, []).append(after[variable.name])
            recorded.setdefault(PREVIOUS_PREFIX + variable.name, []).append(before[variable.name])
        if step % 5 == 4:
            environment.reset_buf[(step // 5) % environment.num_envs] = True
        with _one_call(environment, "a reset"):
            environment.reset_done()
            before = _checked(environment, environment.read_variables(), "right after a reset")
    return {name: torch.cat(values) for name, values in recorded.items()}


def rehearse(environment: VecTask, task: Task | None, recorded: Mapping[str, Tensor]) -> None:
    """Try the task's own fitness, if any, on the recorded states, then step for an episode or
    `REHEARSAL_SECONDS`, to find late errors. Raises EnvironmentFaultError."""
    if task is not None:
        with environment_code(type(environment), CALL_SECONDS, "the task's fitness"):
            fitness = FitnessFunction(task, environment.all_variables(), environment.constants)(
                recorded
            )
        if not bool(fitness.isfinite().all()):
            raise fitness_fault(task)
    generator = torch.Generator().manual_seed(1)
    deadline = time.monotonic() + REHEARSAL_SECONDS
    for _ in range(environment.max_episode_length):
        if time.monotonic() >= deadline:
            return
        with _one_call(environment, "a step"):
            _advance(environment, generator)
            environment.reset_done()


def _one_call(environment: VecTask, doing: str) -> AbstractContextManager[None]:
    return environment_code(
        type(environment), CALL_SECONDS, f"{doing} of {environment.num_envs} environments"
    )


def _advance(environment: VecTask, generator: torch.Generator) -> dict[str, Tensor]:
    """The variables after a step of random actions."""
    drawn = torch.rand(environment.num_envs, environment.num_actions, generator=generator)
    actions = environment.actions_from(drawn)
    transition = environment.advance(actions.to(environment.device))
    return _checked(environment, transition.variables, "")


def _checked(environment: VecTask, values: Mapping[str, Tensor], moment: str) -> dict[str, Tensor]:
    """Copy the variables. Raises EnvironmentFaultError unless they are as declared and finite."""
    cls, rows = type(environment), environment.num_envs
    expected = {variable.name: (rows, *variable.shape) for variable in environment.all_variables()}
    found = {name: tuple(value.shape) for name, value in values.items()}
    expected[OBSERVATIONS], found[OBSERVATIONS] = (
        (rows, environment.num_observations),
        tuple(environment.obs_buf.shape),
    )
    for name in (*expected, *found):
        if expected.get(name) != found.get(name):
            place = place_of_value(cls, name, 0)
            if name not in expected:
                what = "is given, but not declared in the class's `variables`"
            elif name not in found:
                what = "is declared, but not given"
            else:
                what = f"has the shape {found[name]}, expected {expected[name]}"
            raise EnvironmentFaultError(
                f"{place}{name!r} {what}",
                "compute_variables gives exactly the declared variables; the batch is the first"
                " dimension",
            )

    def when(row: int) -> str:
        step = int(environment.progress_buf[row])
        return moment or f"in step {step} of an episode of random actions"

    check_rows(cls, {**values, OBSERVATIONS: environment.obs_buf}, when, environment.actions)
    return {
        name: value.detach().to("cpu", torch.float32, copy=True) for name, value in values.items()
    }


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
        unit = variables[group[0].removeprefix(PREVIOUS_PREFIX)].unit
        name = " and ".join(map(repr, group))
        for level in levels[group]:
            what = level.words or f"{level.value:g}{'' if unit in ('1', '?') else ' ' + unit}"
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


def _at(
    level: _Level,
    group: Sequence[str],
    base: Mapping[str, Tensor],
    variable: Variable,
    windows: Collection[str],
) -> dict[str, Tensor]:
    """Set the first of a group to a level; the others, and the earlier values of a window, keep
    their difference to it."""
    if level.words:  # a direction
        axes = {name: torch.zeros_like(base[name]) for name in group}
        for axis in axes.values():
            axis[..., abs(int(level.value)) - 1] = math.copysign(1.0, level.value)
        return axes
    first = _newest(group[0], base, windows)
    low, high = variable.range or (-math.inf, math.inf)
    return {
        name: (
            level.value + (base[name] - (first.unsqueeze(1) if name in windows else first))
        ).clamp(low, high)
        for name in group
    }


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
