"""Transitions of random actions, on which rewards and fitness functions are tried."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

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
"""Timeout of one step or reset of a few environments, on a busy machine."""


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
