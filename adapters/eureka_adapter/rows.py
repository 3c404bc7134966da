"""Environments side by side, followed step by step: previous values, ends, fitness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from eureka_adapter.faults import Fault
from eureka_adapter.job import Job
from eureka_adapter.rewards import PREVIOUS, SourceFunction

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

    def __init__(self, job: Job, start: Values | None, arguments: tuple[str, ...] = ()) -> None:
        """All rows were just reset. `start`: values of the start states, if the simulator tells
        them. `arguments`: of the reward."""
        path = job.folder / job.fields["fitness"]["file"]
        self._job, self._fitness = job, SourceFunction(path, "compute_fitness", job, Fault)
        named = {*arguments, *self._fitness.arguments}
        self._remembered = [name for name in job.names if PREVIOUS + name in named]
        self.done, self.length, self.fitness = map(torch.tensor, (True, 0, 0.0))
        self._remember({}, start)

    def take(self, step: Step) -> dict[str, Tensor]:
        """Take in a step and the resets after it. Returns the step's values with
        `previous_<variable>`. Raises Fault."""
        ended = torch.as_tensor(step.terminated).bool()
        device, begun = ended.device, self.done.to(ended.device)
        self.done = ended | torch.as_tensor(step.truncated).to(device).bool()
        failed = self._sort_ends(step.causes or {}, ended)
        now = {**step.values, "actions": step.actions, "terminated": failed}
        now = {name: torch.as_tensor(each).to(device).float() for name, each in now.items()}
        self._check_shapes(now, len(ended))
        previous = {PREVIOUS + n: self._previous(n, now[n], begun) for n in self._remembered}
        self.values, given = now, {**now, **previous}
        fitness = self._fitness.series("the fitness", self._fitness(given), failed)
        self.fitness_step = fitness.double()
        self.length = self.length * ~begun + torch.ones_like(ended)
        reduction = _REDUCTIONS[self._job.fields["fitness"]["reduction"]]
        self.fitness = reduction(self.fitness * ~begun, self.fitness_step, self.length)
        self._remember(now, step.start)
        return given

    def _remember(self, now: Mapping[str, Tensor], start: Values | None) -> None:
        """Keep what the next step's previous values are: copies, since the simulator may write its
        next state into the same memory."""
        told = {} if start is None else {"actions": 0.0, "terminated": 0.0, **start}
        self._last, self._start = (
            {name: torch.as_tensor(of[name]).clone() for name in self._remembered if name in of}
            for of in (now, told)
        )

    def _previous(self, name: str, now: Tensor, begun: Tensor) -> Tensor:
        """Value of the step before, or in rows that have just begun that of the start state, which
        has no action. What the simulator does not tell of it is the same as now."""
        mask = begun.reshape(-1, *[1] * (now.dim() - 1))
        return torch.where(mask, self._start.get(name, now).to(now), self._last.get(name, now))

    def _sort_ends(self, causes: Values, ended: Tensor) -> Tensor:
        """Set `ends`; returns the rows that failed."""
        described, rest, failed = self._job.description, self.done, ended
        known = [*described["ends"], REST, TIME_OUT]
        self.ends = dict.fromkeys(known, torch.zeros_like(ended))
        for name, mask in [*causes.items(), (REST, ended), (TIME_OUT, rest)]:
            if name not in known:
                hint = "add it to the `ends` that are described"
                raise Fault(f"`causes` has {name!r}, expected one of {known}", hint)
            found = rest & torch.as_tensor(mask).to(rest.device).bool()
            self.ends[name], rest = self.ends[name] | found, rest & ~found
            if name in described["success_ends"]:
                failed = failed & ~found
        return failed

    def _check_shapes(self, values: Mapping[str, Tensor], rows: int) -> None:
        for each in self._job.description["variables"]:
            name, shape = each["name"], (rows, *each["shape"])
            found = tuple(values[name].shape) if name in values else None
            if found != shape:
                message = f"the variable {name!r} has shape {found}, expected {shape}"
                hint = f"the environments come first; there are values of {', '.join(values)}"
                raise Fault(message, hint)
