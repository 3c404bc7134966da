"""Check of a rollout's states before any reward is called: faults of environment or policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.environment_faults import LARGEST, OBSERVATIONS, is_unsound, state_fault
from eureka_agent.training.rollout import Rollout


@dataclass(frozen=True)
class _Place:
    """An unsound value in a member's part of a rollout."""

    time: float
    """Step that led there; half a step later after a reset or at the rollout's beginning."""
    row: int
    name: str
    value: Tensor


def spoiled_members(
    rollout: Rollout, env_steps: Mapping[int, int], environment: type[VecTask]
) -> list[int]:
    """Members whose policy gave NaN actions, which excuse later states; other unsound states raise
    EnvironmentFaultError. `env_steps`: each member's before the rollout."""
    if _all_sound(rollout):
        return []
    spoiled = []
    for slot in env_steps:
        first = _first_unsound(rollout, slot)
        if first is None:
            continue
        taken = rollout.actions[slot, : math.floor(first.time) + 1, first.row]
        if bool(taken.isnan().any()):
            spoiled.append(slot)
            continue
        steps = max(0, math.floor(first.time)) * rollout.progress.shape[1]
        after = f"(in a training, after {env_steps[slot] + steps:,} env steps)"
        when = f"{_when(rollout, slot, first)} {after}"
        reached = first.time == math.floor(first.time)
        action = taken[-1].clamp(-1.0, 1.0).tolist() if reached else None
        raise state_fault(environment, first.name, first.value, when, action)
    return spoiled


def _all_sound(rollout: Rollout) -> bool:
    """True where every state is sound, by a single transfer from the device."""
    observed = rollout.final_observations, rollout.last_observations, rollout.observations
    values = (*observed, *rollout.arguments.values())
    return bool(torch.stack([(value.abs() < LARGEST).all() for value in values]).all())


def _first_unsound(rollout: Rollout, slot: int) -> _Place | None:
    """A member's earliest unsound value; a variable before an observation of the same step."""
    steps = len(rollout.terminated[slot])
    found = []
    for name, value in {**rollout.arguments, OBSERVATIONS: rollout.final_observations}.items():
        found += _places(name, value[slot], -0.5 if name.startswith(PREVIOUS_PREFIX) else 0.0)
    found += _places(OBSERVATIONS, rollout.observations[slot], -0.5)
    found += _places(OBSERVATIONS, rollout.last_observations[slot].unsqueeze(0), steps - 0.5)
    return min(found, key=lambda place: place.time, default=None)


def _places(name: str, value: Tensor, offset: float) -> list[_Place]:
    """The first unsound value of shape (steps, rows, …), if any; `offset`: added to its step."""
    unsound = is_unsound(value, 2).nonzero()
    if not len(unsound):
        return []
    step, row = unsound[0].tolist()
    return [_Place(step + offset, row, name, value[step, row])]


def _when(rollout: Rollout, slot: int, place: _Place) -> str:
    """Moment of the episode in words."""
    ended = (rollout.terminated[slot] | rollout.truncated[slot])[:, place.row]
    step = math.floor(place.time)
    ends = ended[: max(0, step)].nonzero().flatten().tolist()
    begun = int(rollout.progress[slot, place.row])
    if step < 0 and begun:  # a training spreads the ends of its first episodes over time
        early = f"with progress_buf set to {begun}, as in a training's first episodes,"
        return f"right after a reset, {early}"
    if step < place.time and (step < 0 or bool(ended[step])):
        return "right after a reset"
    count = step - ends[-1] if ends else begun + step + 1
    return f"in step {count} of an episode"
