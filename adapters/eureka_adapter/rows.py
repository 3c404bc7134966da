"""Environments side by side, followed step by step: previous values, ends, fitness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from eureka_adapter.faults import EnvironmentFault
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


class Rows:
    """Rows of environments. After `take`: `values`, `fitness_step`, `done`, `ends` (rows by cause),
    and `fitness` and `length` of the episodes so far; each of shape (rows,)."""

    def __init__(
        self, job: Job, start: Values | None = None, arguments: tuple[str, ...] = ()
    ) -> None:
        """All rows were just reset. `start`: values of the start states, if the simulator tells
        them. `arguments`: of the reward."""
        self._job = job
        # a copy, since the simulator may write its next state into the same memory
        self._start = start and {
            name: torch.as_tensor(value).clone() for name, value in start.items()
        }
        named = {*arguments, *job.fitness.arguments}
        self._remembered = [name for name in job.names if PREVIOUS + name in named]
        self._previous: dict[str, Tensor] = {}
        self._fresh: dict[str, Tensor] = {}
        self.length: Tensor | None = None

    def take(
        self,
        values: Values,
        actions: Any,
        terminated: Any,
        truncated: Any,
        causes: Values | None = None,
    ) -> dict[str, Tensor]:
        """Take in a step; returns the values with `previous_<variable>`."""
        ended = _tensor(terminated, torch.bool)
        device = ended.device
        self.done = ended | _tensor(truncated, torch.bool, device)
        self.ends, rest = {}, self.done
        failed = ended
        for name, mask in (causes or {}).items():
            self.ends[name] = rest & _tensor(mask, torch.bool, device)
            rest = rest & ~self.ends[name]
            if self._is_success(name):
                failed = failed & ~self.ends[name]
        for name, mask in ((REST, rest & ended), (TIME_OUT, rest & ~ended)):
            self.ends[name] = self.ends[name] | mask if name in self.ends else mask
        now = {name: _tensor(value, torch.float32, device) for name, value in values.items()}
        now["actions"] = _tensor(actions, torch.float32, device)
        now["terminated"] = failed.float()
        self._check(now)
        if self.length is None:
            self.length = self.fitness = torch.zeros(len(ended), dtype=torch.float64, device=device)
            self._remember(now, torch.ones_like(ended), self._start)
        given = dict(now)
        for name, previous in self._previous.items():
            fresh = self._fresh.get(name)
            given[PREVIOUS + name] = (
                previous if fresh is None else _chosen(fresh, now[name], previous)
            )
        fitness = self._job.fitness
        self.values = now
        self.fitness_step = fitness.series("the fitness", fitness(given), failed).double()
        self.length = self.length + 1
        reduce = _REDUCTIONS[self._job.fields["fitness"]["reduction"]]
        so_far = torch.where(self.length == 1, torch.zeros_like(self.fitness), self.fitness)
        self.fitness = reduce(so_far, self.fitness_step, self.length)
        return given

    def finish(self, start: Values | None = None) -> None:
        """End the step: rows that are done were reset, to `start` where it is told."""
        self._remember(self.values, self.done, start)
        self.length = self.length * ~self.done

    def _remember(self, values: Mapping[str, Tensor], done: Tensor, start: Values | None) -> None:
        """Keep the values for the next step. Rows that are `done` begin with `start`, without an
        action; of what is not told, the next step's value is taken as the previous one."""
        for name in self._remembered:
            now, told = values[name], None
            if start is not None and name in ("actions", "terminated"):
                told = torch.zeros_like(now)
            if start is not None and name in start:
                told = _tensor(start[name], torch.float32, done.device)
            self._previous[name] = now.clone() if told is None else _chosen(done, told, now)
            self._fresh[name] = done if told is None else torch.zeros_like(done)

    def _is_success(self, cause: str) -> bool:
        described = self._job.description
        if cause not in (*described["ends"], REST, TIME_OUT):
            raise EnvironmentFault(
                f"an episode ended by {cause!r}, expected one of {list(described['ends'])}",
                "add it to `ends` of `described`",
            )
        return cause in described["success_ends"]

    def _check(self, values: Mapping[str, Tensor]) -> None:
        rows = len(values["terminated"])
        for each in self._job.description["variables"]:
            name, shape = each["name"], (rows, *each["shape"])
            found = tuple(values[name].shape) if name in values else "no value"
            if found != shape:
                raise EnvironmentFault(
                    f"the variable {name!r} has {found}, expected the shape {shape}:"
                    " the environments, then the shape that was described",
                    f"correct what gives its value; there are values of {', '.join(values)}",
                )


def _tensor(value: Any, dtype: torch.dtype, device: torch.device | None = None) -> Tensor:
    return torch.as_tensor(value).to(device=device, dtype=dtype)


def _chosen(rows: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """`yes` in these rows, else `no`; shape (batch, …) of both."""
    return torch.where(rows.reshape(-1, *[1] * (yes.dim() - 1)), yes, no)
