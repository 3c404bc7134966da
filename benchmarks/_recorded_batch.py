"""A MuJoCo batch that keeps time and can record what was asked of it, so that the same physics can
be run again with nothing around it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask

_STATE = "physics."
"""Prefix of the simulator's own state among a MuJoCo task's `row_tensors`."""
_COMPUTED = frozenset(("qpos", "qvel", "qacc_warmstart", "time"))
"""Parts of the state that a step computes; the others are what it is given."""


class RecordedBatch:
    """Stands in for a MuJoCo task's batch, to which it hands everything on."""

    def __init__(self, batch: Batch, state: Mapping[str, Tensor]) -> None:
        """`state`: live views of the simulator's state by field. Shape of each: (num_envs, ...)."""
        self._batch = batch
        self._state = state
        self._calls: list[tuple[str, Any, Any]] | None = None
        self.seconds = {"step": 0.0, "reset": 0.0, "recording": 0.0}
        """Wall seconds inside the simulator's calls, and those that this class took itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def step(self, ids: Any = None, **keywords: Any) -> None:
        """See `Batch.step`."""
        began = time.perf_counter()
        if self._calls is not None:
            given = {
                name: value.clone() for name, value in self._state.items() if name not in _COMPUTED
            }
            self._calls.append(("step", (ids, keywords), given))
        ready = time.perf_counter()
        self._batch.step(ids, **keywords)
        self.seconds["step"] += time.perf_counter() - ready
        self.seconds["recording"] += ready - began

    def reset(self, ids: Any = None, **keywords: Any) -> None:
        """See `Batch.reset`."""
        began = time.perf_counter()
        self._batch.reset(ids, **keywords)
        self.seconds["reset"] += time.perf_counter() - began

    def forward(self, ids: Any = None) -> None:
        """See `Batch.forward`; a task calls it on the rows that it has put into a start state."""
        began = time.perf_counter()
        if self._calls is not None:
            self._calls.append(("place", ids, self.copied_state(ids)))
        ready = time.perf_counter()
        self._batch.forward(ids)
        self.seconds["reset"] += time.perf_counter() - ready
        self.seconds["recording"] += ready - began

    def copied_state(self, ids: Any = None) -> dict[str, Tensor]:
        """Copies of the simulator's state, of all rows or of these."""
        return {
            name: (value if ids is None else value[ids]).clone()
            for name, value in self._state.items()
        }

    def record(self) -> None:
        """Note every call from here on."""
        self._calls = []

    def recorded(self) -> list[tuple[str, Any, Any]]:
        """The calls since `record`. Recording ends."""
        calls, self._calls = self._calls, None
        assert calls is not None
        return calls


def batch_of(environment: MujocoTask) -> Batch:
    """The batch that a task simulates its rows in."""
    owner, name = _holder(environment)
    return getattr(owner, name)


def _holder(environment: MujocoTask) -> tuple[object, str]:
    """The object that holds the batch (the task or one of its parts), and the attribute's name."""
    for owner in (environment, *vars(environment).values()):
        for name, value in getattr(owner, "__dict__", {}).items():
            if isinstance(value, Batch):
                return owner, name
    raise SystemExit(
        f"error: {type(environment).__name__} has no mujoco.batch.Batch: it is not simulated on"
        " the CPU"
    )


def watch(environment: MujocoTask) -> RecordedBatch:
    """Put a recorded batch in the place of a task's own."""
    state = {
        name.removeprefix(_STATE): value
        for name, value in environment.row_tensors().items()
        if name.startswith(_STATE)
    }
    owner, name = _holder(environment)
    watched = RecordedBatch(getattr(owner, name), state)
    setattr(owner, name, watched)
    return watched


class BarePhysics:
    """A second batch of a task's model that runs recorded calls again, with nothing around them."""

    def __init__(self, environment: MujocoTask) -> None:
        # a batch of its own, since the training goes on in the other one
        batch = Batch(environment.model, environment.num_envs, nthread=1, persistent=True)
        names = [
            name.removeprefix(_STATE)
            for name in environment.row_tensors()
            if name.startswith(_STATE)
        ]
        self._batch = batch
        self._state = {name: batch.bind(name) for name in names}

    def replay(
        self,
        start: Mapping[str, Tensor],
        calls: list[tuple[str, Any, Any]],
        reached: Mapping[str, Tensor],
    ) -> float:
        """Wall seconds inside `batch.step`. Ends the program where the last call does not come to
        the state `reached` bit for bit."""
        self._place(None, start)
        seconds = 0.0
        for kind, what, values in calls:
            if kind == "place":
                self._place(what, values)
                continue
            ids, keywords = what
            for name, value in values.items():
                self._state[name][:] = value.numpy()
            began = time.perf_counter()
            self._batch.step(ids, **keywords)
            seconds += time.perf_counter() - began
        if not all(np.array_equal(self._state[name], value) for name, value in reached.items()):
            raise SystemExit("error: the same physics came to another state: it was not the same")
        return seconds

    def _place(self, ids: Any, values: Mapping[str, Tensor]) -> None:
        self._batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE)
        for name, value in values.items():
            self._state[name][slice(None) if ids is None else ids] = value.numpy()
        self._batch.forward(ids)
