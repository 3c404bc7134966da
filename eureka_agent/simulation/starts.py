"""Start states and fixed properties of an environment, read from an instance."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import torch

from eureka_agent.records import (
    MOST_CHARACTERS,
    MOST_COLUMNS,
    MOST_MEASURED,
    ColumnRange,
    Measurements,
)
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.user_modules import user_code
from eureka_agent.simulation.vec_task import SUCCEEDED, VecTask
from eureka_agent.task import Task

ROWS = 8
RESETS = 32
"""Most resets of all rows, `ROWS * RESETS` start states; fewer for a slow environment."""
RESET_SECONDS = 5.0
_ALWAYS_ZERO = ("actions", "terminated", SUCCEEDED)
_SEED = 0


def measure_starts(loaded: LoadedEnvironment, task: Task) -> Measurements:
    """Measure start ranges and fixed properties of an environment. Raises EnvironmentLoadError."""
    environment = loaded.make(task, ROWS, seed=_SEED)
    try:
        with user_code(loaded.folder, f"resetting {loaded.environment_class.__name__}"):
            starts, resets = start_ranges(environment)
            return Measurements(
                starts=starts,
                resets=resets,
                termination_conditions=_bounded(environment.termination_conditions),
                masses_and_sizes=tuple(
                    each[:MOST_CHARACTERS] for each in environment.masses_and_sizes[:MOST_MEASURED]
                ),
            )
    finally:
        environment.close()


def start_ranges(environment: VecTask) -> tuple[dict[str, tuple[ColumnRange, ...]], int]:
    """Bounds and smallest magnitude of finite variables after resets, and the resets' number."""
    seen: dict[str, list[torch.Tensor]] = {}
    deadline = time.monotonic() + RESET_SECONDS
    count = 0
    while count < RESETS and (count == 0 or time.monotonic() < deadline):
        environment.reset()
        count += 1
        for name, value in environment.read_variables().items():
            if name not in _ALWAYS_ZERO:
                seen.setdefault(name, []).append(value.detach().to("cpu", torch.float32, copy=True))
    ranges = {
        name: _columns(torch.cat(values)) for name, values in list(seen.items())[:MOST_MEASURED]
    }
    finite = {
        name: each
        for name, each in ranges.items()
        if all(math.isfinite(end) for ends in each for end in ends)
    }
    return finite, count * environment.num_envs


def _columns(values: torch.Tensor) -> tuple[ColumnRange, ...]:
    # no single index names an entry of a matrix
    if values.dim() != 2 or values.shape[1] > MOST_COLUMNS:
        values = values.reshape(-1, 1)
    ends = (values.amin(dim=0), values.amax(dim=0), values.abs().amin(dim=0))
    return tuple(zip(*(each.tolist() for each in ends), strict=True))


def _bounded(conditions: Mapping[str, str]) -> dict[str, str]:
    pairs = list(conditions.items())[:MOST_MEASURED]
    return {cause[:MOST_CHARACTERS]: words[:MOST_CHARACTERS] for cause, words in pairs}
