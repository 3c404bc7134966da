"""States that a reward is tried on: transitions recorded under random actions, and extreme values of its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Variable

RECORDED_ENVIRONMENTS = 8
RECORDED_STEPS = 40

_UNBOUNDED = 1e3
_UNBOUNDED_BY_UNIT = {"1": 1e1, "N": 1e4, "N·m": 1e4, "N*m": 1e4, "N m": 1e4, "Nm": 1e4}
"""Magnitude that a variable without a range may reach when physics goes wrong, by unit."""

_ROWS_OF_AN_EXTREME = 4


@dataclass(frozen=True)
class ExtremeStates:
    """Recorded rows in which one variable, or all of them, were set to an extreme value."""

    values: dict[str, Tensor]
    """By argument name. Shape of each: (rows, *variable.shape)."""
    labels: tuple[str, ...]
    """For every row what was set, in words."""


def record_transitions(environment: VecTask, variables: Sequence[Variable], seed: int = 0) -> dict[str, Tensor]:
    """Every variable and `previous_<variable>` over `RECORDED_STEPS` steps of random actions, flattened over steps and rows.

    Every few steps one row is reset by hand, so that first steps of episodes are among them. Shape of each: (transitions, *variable.shape),
    float32 on the CPU. The environment should have `RECORDED_ENVIRONMENTS` rows.
    """
    generator = torch.Generator().manual_seed(seed)
    environment.reset()
    recorded: dict[str, list[Tensor]] = {}
    before = _snapshot(environment.read_variables())
    for step in range(RECORDED_STEPS):
        actions = 2.0 * torch.rand(environment.num_envs, environment.num_actions, generator=generator) - 1.0
        after = _snapshot(environment.advance(actions.to(environment.device)).variables)
        for variable in variables:
            recorded.setdefault(variable.name, []).append(after[variable.name])
            recorded.setdefault(PREVIOUS_PREFIX + variable.name, []).append(before[variable.name])
        if step % 5 == 4:
            environment.reset_buf[(step // 5) % environment.num_envs] = True
        environment.reset_done()
        before = _snapshot(environment.read_variables())
    return {name: torch.cat(values) for name, values in recorded.items()}


def extreme_states(
    recorded: Mapping[str, Tensor], arguments: Sequence[str], variables: Mapping[str, Variable]
) -> ExtremeStates:
    """Each argument on its own, then all together, at zero and at its limits.

    A limit is the variable's range where that is known, else a magnitude by unit that only broken physics reaches.
    """
    values: dict[str, list[Tensor]] = {name: [] for name in arguments}
    labels: list[str] = []
    rows = torch.linspace(0, len(next(iter(recorded.values()))) - 1, _ROWS_OF_AN_EXTREME).long()
    base = {name: recorded[name][rows] for name in arguments}
    levels = {name: _levels(variables[name.removeprefix(PREVIOUS_PREFIX)]) for name in arguments}

    def add(changed: dict[str, float], label: str) -> None:
        for name in arguments:
            row = torch.full_like(base[name], changed[name]) if name in changed else base[name]
            values[name].append(row)
        labels.extend([label] * _ROWS_OF_AN_EXTREME)

    for name in arguments:
        unit = variables[name.removeprefix(PREVIOUS_PREFIX)].unit
        for level in dict.fromkeys(levels[name]):
            add({name: level}, f"{name!r} is {level:g}{'' if unit == '1' else ' ' + unit}")
    for index, words in enumerate(("0", "at its lower limit", "at its upper limit")):
        add({name: levels[name][index] for name in arguments}, f"every variable is {words}")
    return ExtremeStates({name: torch.cat(parts) for name, parts in values.items()}, tuple(labels))


def _levels(variable: Variable) -> tuple[float, float, float]:
    """Zero (or the value of its range nearest to it), lower and upper limit."""
    magnitude = _UNBOUNDED_BY_UNIT.get(variable.unit, _UNBOUNDED)
    low, high = variable.range if variable.range is not None else (-magnitude, magnitude)
    return min(max(0.0, low), high), low, high


def _snapshot(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().to("cpu", torch.float32, copy=True) for name, value in values.items()}
