"""Steps of random actions for the conformance checks; start states for designers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent import records
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.user_modules import user_code
from eureka_agent.simulation.vec_task import ALWAYS_THERE, VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task

ROWS = 8
RESETS = 32
"""Most resets of all rows, `ROWS * RESETS` start states; fewer for a slow environment."""
RESET_SECONDS = 5.0
_SEED = 0


@dataclass(frozen=True)
class RecordedStep:
    observations: Tensor
    values: dict[str, Tensor]
    """Variables and their `previous_` values by argument name."""
    terminated: Tensor
    truncated: Tensor


def random_actions(num_envs: int, num_actions: int, steps: int, seed: int) -> Tensor:
    """Gaussian actions, a third of them out of bounds. Shape: (steps, num_envs, num_actions)."""
    return torch.randn(steps, num_envs, num_actions, generator=torch.Generator().manual_seed(seed))


def actions_for(environment: VecTask, steps: int, seed: int) -> Tensor:
    """`random_actions` of an environment, or choices."""
    size = environment.num_envs, environment.num_actions
    return as_choices(environment, random_actions(*size, steps, seed))


def as_choices(environment: VecTask, gaussian: Tensor) -> Tensor:
    """Equally frequent choices from Gaussian numbers, if any. Shape of both: (…, num_actions)."""
    if not environment.action_choices:
        return gaussian
    return environment.actions_from(torch.special.ndtr(gaussian))


def copied_variables(environment: VecTask) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in environment.read_variables().items()}


def run(environment: VecTask, actions: Tensor) -> Iterator[RecordedStep]:
    """Make steps of `actions`, shape (steps, num_envs, num_actions), then reset ended rows."""
    previous = copied_variables(environment)
    for step_actions in actions:
        transition = environment.advance(step_actions.to(environment.device))
        values = {name: value.clone() for name, value in transition.variables.items()}
        before = {PREVIOUS_PREFIX + name: value for name, value in previous.items()}
        ends = transition.terminated.clone(), transition.truncated.clone()
        yield RecordedStep(transition.observations.clone(), {**values, **before}, *ends)
        environment.reset_done()
        previous = copied_variables(environment)


# ── start states ──────────────────────────────────────────────────────────────────────────────────


def measure_starts(loaded: LoadedEnvironment, task: Task) -> records.Measurements:
    """Measure start ranges and fixed properties of an environment. Raises EnvironmentLoadError."""
    environment = loaded.make(task, ROWS, seed=_SEED)
    try:
        with user_code(loaded.folder, f"resetting {loaded.environment_class.__name__}"):
            starts, resets = start_ranges(environment)
            conditions = list(environment.termination_conditions.items())[: records.MOST_MEASURED]
            most = records.MOST_CHARACTERS
            sizes = environment.masses_and_sizes[: records.MOST_MEASURED]
            return records.Measurements(
                starts=starts,
                resets=resets,
                termination_conditions={cause[:most]: words[:most] for cause, words in conditions},
                masses_and_sizes=tuple(each[:most] for each in sizes),
            )
    finally:
        environment.close()


def start_ranges(environment: VecTask) -> tuple[dict[str, tuple[records.ColumnRange, ...]], int]:
    """Bounds and smallest magnitude of finite variables after resets, and the resets' number."""
    seen: dict[str, list[Tensor]] = {}
    deadline = time.monotonic() + RESET_SECONDS
    count = 0
    while count < RESETS and (count == 0 or time.monotonic() < deadline):
        environment.reset()
        count += 1
        for name, value in environment.read_variables().items():
            if name not in ALWAYS_THERE:
                seen.setdefault(name, []).append(value.detach().to("cpu", torch.float32, copy=True))
    ranges: dict[str, tuple[records.ColumnRange, ...]] = {}
    for name, parts in list(seen.items())[: records.MOST_MEASURED]:
        columns = column_ranges(torch.cat(parts))
        if all(math.isfinite(end) for column in columns for end in column):
            ranges[name] = columns
    return ranges, count * environment.num_envs


def column_ranges(values: Tensor) -> tuple[records.ColumnRange, ...]:
    """Bounds and smallest magnitude of every column, or of all where no single index names an
    entry. Shape: (resets, *variable.shape)."""
    if values.dim() != 2 or values.shape[1] > records.MOST_COLUMNS:
        values = values.reshape(-1, 1)
    ends = (values.amin(dim=0), values.amax(dim=0), values.abs().amin(dim=0))
    return tuple(zip(*(each.tolist() for each in ends), strict=True))
