"""The states of a rollout, looked at before any reward is called: where one is no number, is it the
environment's fault or the policy's?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.environment_faults import LARGEST, OBSERVATIONS, is_unsound, state_fault
from eureka_agent.training.rollout import Rollout


@dataclass(frozen=True)
class _Place:
    """Place of an unsound value in a member's part of a rollout."""

    time: float
    """The step that led there; half a step later for what a reset, or the rollout's beginning, left
    there."""
    row: int
    name: str
    value: Tensor


def spoiled_members(
    rollout: Rollout,
    members: Collection[int],
    environment: type[VecTask],
    env_steps: Mapping[int, int],
) -> list[int]:
    """Members whose policy gave actions that are NaN, so that no state after them can be sound.

    Raises EnvironmentFaultError where actions that are numbers led to a state that is none.
    `env_steps`: what each member had trained before.
    """
    if _all_sound(rollout):
        return []
    spoiled = []
    for slot in members:
        first = _first_unsound(rollout, slot)
        if first is None:
            continue
        taken = rollout.actions[slot, : math.floor(first.time) + 1, first.row]
        if bool(taken.isnan().any()):
            spoiled.append(slot)
            continue
        steps = max(0, math.floor(first.time)) * rollout.progress.shape[1]
        when = (
            f"{_when(rollout, slot, first)} (in a training, after {env_steps[slot] + steps:,} env"
            " steps)"
        )
        reached = first.time == math.floor(first.time)
        action = taken[-1].clamp(-1.0, 1.0).tolist() if reached else None
        raise state_fault(environment, first.name, first.value, when, action)
    return spoiled


def _all_sound(rollout: Rollout) -> bool:
    """True where every state of every member is sound. One look at everything: a single transfer
    from the device."""
    values = (
        rollout.final_observations,
        rollout.last_observations,
        rollout.observations,
        *rollout.arguments.values(),
    )
    return bool(torch.stack([(value.abs() < LARGEST).all() for value in values]).all())


def _first_unsound(rollout: Rollout, slot: int) -> _Place | None:
    """The earliest one of a member; of variables and observations that break together, a
    variable."""
    steps = len(rollout.terminated[slot])
    found = []
    for name, value in {**rollout.arguments, OBSERVATIONS: rollout.final_observations}.items():
        found += _places(name, value[slot], -0.5 if name.startswith(PREVIOUS_PREFIX) else 0.0)
    found += _places(OBSERVATIONS, rollout.observations[slot], -0.5)
    found += _places(OBSERVATIONS, rollout.last_observations[slot].unsqueeze(0), steps - 0.5)
    return min(found, key=lambda place: place.time, default=None)


def _places(name: str, value: Tensor, offset: float) -> list[_Place]:
    """The first unsound step and row of a value of shape (steps, rows, …), if there is one;
    `offset`: of its time to its place."""
    unsound = is_unsound(value, 2).nonzero()
    if not len(unsound):
        return []
    step, row = unsound[0].tolist()
    return [_Place(step + offset, row, name, value[step, row])]


def _when(rollout: Rollout, slot: int, place: _Place) -> str:
    """The moment in its episode, in words."""
    ended = (rollout.terminated[slot] | rollout.truncated[slot])[:, place.row]
    step = math.floor(place.time)
    ends = ended[: max(0, step)].nonzero().flatten().tolist()
    begun = int(rollout.progress[slot, place.row])
    if step < 0 and begun:  # a training spreads the ends of its first episodes over time
        return (
            f"right after a reset, with progress_buf set to {begun}, as in a training's first"
            " episodes,"
        )
    if step < place.time and (step < 0 or bool(ended[step])):
        return "right after a reset"
    count = step - ends[-1] if ends else begun + step + 1
    return f"in step {count} of an episode"
