"""States that a reward is tried on: transitions recorded under random actions, and extreme values
of its variables."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task, Variable
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
"""Time limit for one step or one reset of so few environments, on a busy machine."""

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
"""Magnitude that a variable without a range reaches in some task, by unit."""
_RECORDED_FACTOR = 5.0
"""A trained policy moves as many times farther and faster than random actions do, where that is
more."""
_BROKEN = 1e3
_BROKEN_BY_UNIT = {"1": 1e1, "N": 1e4, "N·m": 1e4, "N*m": 1e4, "N m": 1e4, "Nm": 1e4}
"""Magnitude that it reaches only when physics goes wrong."""
_UNIT_TOLERANCE = 1e-3
_COUPLED = 0.25
"""Variables whose difference spreads less than this part of what each of them does are one quantity
at two moments, or in two places."""
_ROWS_OF_AN_EXTREME = 4


@dataclass(frozen=True)
class ExtremeStates:
    """Recorded rows in which one quantity, or all of them, were set to an extreme value."""

    values: dict[str, Tensor]
    """By argument name. Shape of each: (rows, *variable.shape)."""
    labels: tuple[str, ...]
    """For every row what was set, in words."""
    beyond: tuple[bool, ...]
    """For every row whether only broken physics comes there."""


@dataclass(frozen=True)
class _Level:
    """One value for a quantity. For a direction it is the number of the axis that it points
    along."""

    value: float
    words: str
    beyond: bool = False


def record_transitions(
    environment: VecTask, variables: Sequence[Variable], seed: int = 0
) -> dict[str, Tensor]:
    """Every variable and `previous_<variable>` over `RECORDED_STEPS` steps of random actions,
    flattened over steps and rows.

    Every few steps one row is reset by hand, so that first steps of episodes are among them. Shape
    of each: (transitions, *variable.shape), float32 on the CPU. The environment should have
    `RECORDED_ENVIRONMENTS` rows.

    The states are looked at before any reward is. Raises EnvironmentFaultError where the
    environment's code raises, does not come back, or gives something else than the declared
    variables, as numbers.
    """
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
    """Try the task's own fitness (None: it has none) on the recorded states, and go on from there
    for as long as an episode is, or for `REHEARSAL_SECONDS`: what fails late is found before it
    costs anything.

    Raises EnvironmentFaultError.
    """
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
    """Copies of the variables, which are the declared ones, of the declared shapes, and numbers.
    Raises EnvironmentFaultError."""
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
        return (
            moment
            or f"in step {int(environment.progress_buf[row])} of an episode of random actions"
        )

    check_rows(cls, {**values, OBSERVATIONS: environment.obs_buf}, when, environment.actions)
    return _snapshot(values)


def extreme_states(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> ExtremeStates:
    """Each quantity on its own, at zero, at its limits, and where only broken physics comes; then
    all together, where no physics comes.

    A limit is the variable's range where that is known, else a magnitude by unit and by what was
    recorded. What moves together, such as a variable and its `previous_` one, is moved together, by
    the recorded difference; directions and quaternions, which have length 1, keep it.
    """
    values: dict[str, list[Tensor]] = {name: [] for name in arguments}
    labels: list[str] = []
    beyond: list[bool] = []
    rows = torch.linspace(0, len(next(iter(recorded.values()))) - 1, _ROWS_OF_AN_EXTREME).long()
    base = {name: recorded[name][rows] for name in arguments}
    groups = _groups(recorded, arguments)
    levels = {
        group: _levels(recorded[group[0]], variables[group[0].removeprefix(PREVIOUS_PREFIX)])
        for group in groups
    }

    def add(changed: Mapping[tuple[str, ...], _Level], label: str, is_beyond: bool) -> None:
        state = dict(base)
        for group, level in changed.items():
            state |= _at(level, group, base, variables[group[0].removeprefix(PREVIOUS_PREFIX)])
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
    level: _Level, group: Sequence[str], base: Mapping[str, Tensor], variable: Variable
) -> dict[str, Tensor]:
    """The first of a group at a level, the others as far from it as they were recorded, within the
    variable's range."""
    first = base[group[0]]
    if level.words:  # a direction
        axis = torch.zeros_like(first)
        axis[..., abs(int(level.value)) - 1] = math.copysign(1.0, level.value)
        return dict.fromkeys(group, axis)
    moved = {name: torch.full_like(first, level.value) + (base[name] - first) for name in group}
    return (
        {name: value.clamp(*variable.range) for name, value in moved.items()}
        if variable.range
        else moved
    )


def _groups(recorded: Mapping[str, Tensor], arguments: Sequence[str]) -> list[tuple[str, ...]]:
    """The arguments, those together that move together."""
    groups: list[list[str]] = []
    for name in arguments:
        home = next((group for group in groups if _move_together(name, group[0], recorded)), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return [tuple(group) for group in groups]


def _move_together(name: str, other: str, recorded: Mapping[str, Tensor]) -> bool:
    one, two = recorded[name], recorded[other]
    if name.removeprefix(PREVIOUS_PREFIX) == other.removeprefix(PREVIOUS_PREFIX):
        return True
    if one.shape != two.shape:
        return False
    spread = torch.minimum(one.std(dim=0), two.std(dim=0))
    return bool(((one - two).std(dim=0) < _COUPLED * spread).all())


def _levels(values: Tensor, variable: Variable) -> list[_Level]:
    """Zero (or the value of its range nearest to it), lower and upper limit, and two levels beyond
    where there is no range."""
    if values.dim() > 1 and bool(((values.norm(dim=-1) - 1.0).abs() < _UNIT_TOLERANCE).all()):
        axes = [axis for each in range(1, values.shape[-1] + 1) for axis in (each, -each)]
        return [
            _Level(axis, f"along axis {abs(axis) - 1}" if axis > 0 else f"against axis {-axis - 1}")
            for axis in axes
        ]
    if variable.range is not None:
        low, high = variable.range
        return [_Level(value, "") for value in (min(max(0.0, low), high), low, high)]
    most = max(
        _PLAUSIBLE_BY_UNIT.get(variable.unit, _PLAUSIBLE),
        _RECORDED_FACTOR * values.abs().max().item(),
    )
    broken = max(_BROKEN_BY_UNIT.get(variable.unit, _BROKEN), most)
    # a distance or a force's size is never negative
    low = -most if values.min() < 0.0 or not values.any() else 0.0
    high = most if values.max() > 0.0 or not values.any() else 0.0
    return [
        _Level(0.0, ""),
        _Level(low, ""),
        _Level(high, ""),
        _Level(-broken, "", True),
        _Level(broken, "", True),
    ]


def _snapshot(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: value.detach().to("cpu", torch.float32, copy=True) for name, value in values.items()
    }
