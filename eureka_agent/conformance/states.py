"""Checks of `eureka envs --check` on a state's storage: columns, attributes, whole episodes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy
import torch
from torch import Tensor

from eureka_agent.conformance.checks import (
    ROWS,
    Nonconforming,
    NotApplicable,
    Remark,
    Subject,
)
from eureka_agent.simulation.mujoco_task import UNSTABLE_PHYSICS
from eureka_agent.simulation.rollouts import actions_for, as_choices, run
from eureka_agent.simulation.vec_task import Transition, VecTask
from eureka_agent.training.environment_faults import OBSERVATIONS, check_rows

_EPISODES = 2
_HELD_STEPS = 25
_STEPS = 40
_BASE_ATTRIBUTES = frozenset(("active_rows", "skipped_rows", "extras", "random", "resets_by_mask"))


@dataclass
class Seen:
    """Values seen in rollouts of a task."""

    steps: int = 0
    ended: int = 0
    """Episodes that ended before the time limit."""
    unstable: int = 0
    """Simulations that MuJoCo reset by itself."""
    trained_fitness: float = 0.0
    """Largest magnitude of an episode's fitness in a brief training."""
    low: dict[str, Tensor] = field(default_factory=dict)
    high: dict[str, Tensor] = field(default_factory=dict)
    """Smallest and largest value of each observation's column, and of the fitness."""

    def add(self, transition: Transition) -> None:
        """Add a step of all rows."""
        self.steps += len(transition.terminated)
        self.ended += int(transition.terminated.sum())
        if UNSTABLE_PHYSICS in transition.causes:
            self.unstable += int(transition.causes[UNSTABLE_PHYSICS].sum())
        self.add_values(OBSERVATIONS, transition.observations)

    def add_values(self, name: str, values: Tensor) -> None:
        """Add values, whose first dimension is the batch."""
        low, high = values.amin(dim=0), values.amax(dim=0)
        self.low[name] = torch.minimum(self.low.get(name, low), low)
        self.high[name] = torch.maximum(self.high.get(name, high), high)


def long_episodes(subject: Subject, seen: Seen, seconds: float) -> None:
    """Nothing turns NaN, infinite or huge in whole episodes of random and of held actions."""
    environment = subject.make()
    fitness = subject.fitness()
    steps = _EPISODES * environment.max_episode_length
    generator = torch.Generator().manual_seed(8)
    deadline = time.monotonic() + seconds
    before = {name: value.clone() for name, value in environment.read_variables().items()}
    held = torch.zeros(ROWS, environment.num_actions)

    def when(row: int) -> str:
        return f"in step {int(environment.progress_buf[row])} of an episode of random actions"

    try:
        for step in range(steps):
            if step % _HELD_STEPS == 0:
                if time.monotonic() >= deadline:
                    break
                held = as_choices(environment, torch.randn(held.shape, generator=generator))
                held = held if environment.action_choices else held.sign()
            actions = as_choices(environment, torch.randn(held.shape, generator=generator))
            actions[ROWS // 2 :] = held[ROWS // 2 :]
            transition = environment.advance(actions)
            values = {name: value.clone() for name, value in transition.variables.items()}
            states = {**values, OBSERVATIONS: transition.observations}
            check_rows(type(environment), states, when, environment.actions)
            seen.add(transition)
            previous = {f"previous_{name}": each for name, each in before.items()}
            seen.add_values("fitness", fitness({**values, **previous}))
            environment.reset_done()
            before = {name: value.clone() for name, value in environment.read_variables().items()}
    finally:
        environment.close()


def written_columns(subject: Subject) -> None:
    """compute_observations writes every column of obs_buf."""
    environment = subject.make()
    buffer = environment.obs_buf
    environment.obs_buf.fill_(torch.nan)
    environment.compute_observations()
    if environment.obs_buf is buffer:
        missing = environment.obs_buf.isnan().all(dim=0).nonzero().flatten().tolist()
        if missing:
            raise Nonconforming(
                f"{environment.num_observations} columns, as num_observations says",
                f"never written: {_columns(missing)}",
                "write them, or make num_observations smaller: policies see them as 0",
            )


def moving_columns(subject: Subject, seen: Seen) -> Iterator[Remark]:
    """Every observation's column takes more than one value."""
    if OBSERVATIONS not in seen.low:
        return
    low, high = seen.low[OBSERVATIONS], seen.high[OBSERVATIONS]
    still = (low == high).nonzero().flatten().tolist()
    if still:
        values = ", ".join(f"{float(low[column]):.4g}" for column in still[:8])
        yield Remark(
            "columns that change",
            f"{_columns(still)} always {values} in {seen.steps:,} steps of random and trained"
            " actions",
            "a column that never changes teaches nothing: see whether it is computed",
        )


def stable_physics(subject: Subject, seen: Seen) -> Iterator[Remark]:
    """MuJoCo need not reset a simulation whose state became NaN or huge."""
    if seen.unstable:
        yield Remark(
            "no simulation that breaks",
            f"{seen.unstable} in {seen.steps:,} steps of random and trained actions; the episodes"
            f" end by {UNSTABLE_PHYSICS!r}",
            "a smaller timestep, more armature or damping in the joints, and smaller forces keep"
            " the model stable",
        )


def state_in_tensors(subject: Subject) -> Iterator[Remark]:
    """Tensors with a row per environment hold all that a step changes, as a resume needs."""
    environment = subject.make()
    if not environment.restorable:
        raise NotApplicable
    environment.tell_rows_from_constants(subject.make(ROWS + 1))
    before = _attributes(environment)
    for _ in run(environment, actions_for(environment, _STEPS, seed=9)):
        pass
    after = _attributes(environment)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if changed:
        names = ", ".join(
            f"self.{name} ({type(vars(environment).get(name)).__name__})" for name in changed[:8]
        )
        yield Remark(
            "nothing else changes while it is stepped",
            f"{names}: not saved with a row, nor given back to it",
            "keep one tensor row for each environment, add it to row_tensors(), or write"
            " `restorable = False` in the class",
        )


def _attributes(environment: VecTask) -> dict[str, object]:
    """Attributes outside a row's state, in a comparable form."""
    # a subclass may give row tensors under other names
    rows = {**environment.row_tensors(), **VecTask.row_tensors(environment)}
    held = frozenset(map(id, rows.values()))
    return {
        name: _comparable(value, held)
        for name, value in vars(environment).items()
        if name not in rows and name not in _BASE_ATTRIBUTES and not name.startswith("__")
    }


def _comparable(value: object, held: frozenset[int], depth: int = 4) -> object:
    """A plain value, equal for equal content; a type's name for any other object. `held`: ids of
    the row tensors, which may stand in a dict or list."""
    if isinstance(value, Tensor):
        # a view of a row's state, such as a named sensor, belongs to that state
        rows = id(value) in held or value._base is not None or value.is_inference()
        return "tensor" if rows else (tuple(value.shape), value.tolist())
    if isinstance(value, numpy.ndarray):
        own = value.base is None and value.dtype != object
        return (value.shape, value.tolist()) if own else "array"
    if depth and isinstance(value, (list, tuple, deque)):
        return [_comparable(each, held, depth - 1) for each in value]
    if depth and isinstance(value, dict):
        return {repr(key): _comparable(each, held, depth - 1) for key, each in value.items()}
    if isinstance(value, (bool, int, float, str, bytes, type(None), set, frozenset, numpy.generic)):
        return repr(value)
    return type(value).__name__


def _columns(columns: list[int]) -> str:
    shown = ", ".join(map(str, columns[:12])) + ("…" if len(columns) > 12 else "")
    return f"column{'s' if len(columns) > 1 else ''} {shown}"
