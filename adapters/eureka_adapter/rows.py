"""Environments side by side, followed step by step: previous values, ends, fitness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from eureka_adapter.faults import Fault
from eureka_adapter.rewards import PREVIOUS

if TYPE_CHECKING:
    from eureka_adapter.job import Job

Values = Mapping[str, Any]
"""Tensors or arrays by variable, of shape (num_envs, *shape of the variable)."""
REST, TIME_OUT = "terminated", "time_out"
"""Causes of ends that the simulator does not name."""
_REDUCTIONS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "sum": lambda so_far, now, steps: so_far + now,
    "mean": lambda so_far, now, steps: so_far + (now - so_far) / steps,
    "last": lambda so_far, now, steps: now,
    "max": lambda so_far, now, steps: torch.where(steps == 1, now, torch.maximum(so_far, now)),
}


class Step(NamedTuple):
    """A control step of all environments. Masks have shape (num_envs,)."""

    values: Values
    """Values of the states that were reached, before any reset."""
    actions: Any
    """As they were applied."""
    terminated: Any
    truncated: Any
    causes: Values | None = None
    """Masks by cause of an early end."""
    start: Values | None = None
    """Values after the resets, if the simulator tells them; those of rows that ended count."""
    observations: Any = None
    """Next input of a policy; for `play`."""


class Rows:
    """Rows of environments. After `take` there are `values`; `done` and `ends`, which are masks by
    cause; `fitness_step`; and `fitness` and `length` of the episodes so far, of shape (rows,)."""

    length: Tensor
    fitness: Tensor

    def __init__(self, job: Job, start: Values | None, arguments: tuple[str, ...] = ()) -> None:
        """All rows were just reset. `start`: values of the start states, if the simulator tells
        them. `arguments`: of the reward."""
        self._job = job
        # a copy, since the simulator may write its next state into the same memory
        self._start = start and {name: torch.as_tensor(start[name]).clone() for name in start}
        named = {*arguments, *job.fitness.arguments}
        self._remembered = [name for name in job.names if PREVIOUS + name in named]
        self._previous: dict[str, Tensor] = {}
        self._unknown: dict[str, Tensor] = {}
        """Rows whose previous value the simulator does not tell."""

    def take(self, step: Step) -> dict[str, Tensor]:
        """Take in a step; returns the values with `previous_<variable>`. Raises Fault."""
        described, is_first = self._job.description, not hasattr(self, "values")
        ended = torch.as_tensor(step.terminated).bool()
        device, failed, known = ended.device, ended, [*described["ends"], REST, TIME_OUT]
        self.done = rest = ended | torch.as_tensor(step.truncated).to(device).bool()
        self.ends = dict.fromkeys(known, torch.zeros_like(ended))
        for name, mask in (step.causes or {}).items():
            if name not in known:
                hint = "add it to the `ends` that are described"
                raise Fault(f"`causes` has {name!r}, expected one of {known}", hint)
            self.ends[name] = rest & torch.as_tensor(mask).to(device).bool()
            rest = rest & ~self.ends[name]
            if name in described["success_ends"]:
                failed = failed & ~self.ends[name]
        self.ends[REST] = self.ends[REST] | (rest & ended)
        self.ends[TIME_OUT] = self.ends[TIME_OUT] | (rest & ~ended)
        now = {**step.values, "actions": step.actions, "terminated": failed}
        now = {name: torch.as_tensor(each).to(device).float() for name, each in now.items()}
        self._check_shapes(now, len(ended))
        if is_first:
            self.length = self.fitness = torch.zeros(len(ended), dtype=torch.float64, device=device)
            self._remember(now, torch.ones_like(ended), self._start)
        self.values, given = now, dict(now)
        for name, previous in self._previous.items():
            given[PREVIOUS + name] = _chosen(self._unknown[name], now[name], previous)
        fitness = self._job.fitness
        self.fitness_step = fitness.series("the fitness", fitness(given), failed).double()
        self.length = self.length + 1
        so_far = torch.where(self.length == 1, torch.zeros_like(self.fitness), self.fitness)
        reduction = _REDUCTIONS[self._job.fields["fitness"]["reduction"]]
        self.fitness = reduction(so_far, self.fitness_step, self.length)
        return given

    def finish(self, start: Values | None = None) -> None:
        """End the step: rows that are done were reset, to `start` where it is told."""
        self._remember(self.values, self.done, start)
        self.length = self.length * ~self.done

    def _remember(self, values: Mapping[str, Tensor], done: Tensor, start: Values | None) -> None:
        """Keep the values for the next step. Rows that are `done` begin with `start`, without an
        action; for what is not told the next step's value is taken."""
        for name in self._remembered:
            now, told = values[name], None
            if start is not None and name in start:
                told = torch.as_tensor(start[name]).to(now)
            elif start is not None and name in ("actions", "terminated"):
                told = torch.zeros_like(now)
            self._previous[name] = now.clone() if told is None else _chosen(done, told, now)
            self._unknown[name] = done if told is None else torch.zeros_like(done)

    def _check_shapes(self, values: Mapping[str, Tensor], rows: int) -> None:
        for each in self._job.description["variables"]:
            name, shape = each["name"], (rows, *each["shape"])
            found = tuple(values[name].shape) if name in values else None
            if found != shape:
                message = f"the variable {name!r} has shape {found}, expected {shape}"
                hint = f"the environments come first; there are values of {', '.join(values)}"
                raise Fault(message, hint)


def _chosen(rows: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """`yes` in these rows, else `no`; shape (batch, …) of both."""
    return torch.where(rows.reshape(-1, *[1] * (yes.dim() - 1)), yes, no)
