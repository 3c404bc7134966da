"""Arguments by name: which variables a reward or a fitness reads, and what they are called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError, EurekaError, did_you_mean
from eureka_agent.task import PREVIOUS_PREFIX, Task, Variable

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def variable_of(argument: str) -> str:
    """The variable that an argument reads: `previous_height` reads `height`."""
    return argument.removeprefix(PREVIOUS_PREFIX)


def bind_arguments(
    function: Callable[..., Any],
    variables: Sequence[Variable],
    allow_private: bool,
    error: type[EurekaError],
) -> tuple[str, ...]:
    """Names of a function's arguments, each a variable or `previous_<variable>`.

    Raises `error` for an argument that is none, for a private variable unless `allow_private`, and for `*args` and the like.
    """
    known = {variable.name: variable for variable in variables}
    name = getattr(function, "__name__", repr(function))
    arguments = []
    for parameter in inspect.signature(function).parameters.values():
        argument = parameter.name
        if parameter.kind not in _BY_NAME:
            raise error(
                f"{name} takes {str(parameter)!r}, expected variables by name", "name every argument after a variable"
            )
        variable = known.get(variable_of(argument))
        if variable is None:
            public = [item.name for item in variables if allow_private or not item.private]
            candidates = [PREVIOUS_PREFIX + item for item in public] if argument.startswith(PREVIOUS_PREFIX) else public
            raise error(
                f"{name} reads {argument!r}, which is no variable of the environment",
                did_you_mean(argument, candidates),
            )
        if variable.private and not allow_private:
            raise error(
                f"{name} reads {argument!r}, which is private: it is part of the fitness",
                "build the reward from the environment's public variables",
            )
        arguments.append(argument)
    return tuple(arguments)


def device_of(values: Mapping[str, Tensor]) -> AbstractContextManager[object]:
    """A context in which tensors that are made without a device are on that of `values`."""
    device = next((value.device for value in values.values()), torch.device("cpu"))
    return nullcontext() if device.type == "cpu" else device


class FitnessFunction:
    """A task's per-step fitness, called with the variables that it names."""

    def __init__(self, task: Task, variables: Sequence[Variable]) -> None:
        """Raises EnvironmentLoadError when the fitness reads what the environment does not have."""
        self._function = task.fitness
        self.reduction = task.fitness_reduction
        self.arguments = bind_arguments(task.fitness, variables, allow_private=True, error=EnvironmentLoadError)

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """Fitness of every step. Shape: (batch,), float32. `values`: by argument name, shape of each (batch, *variable.shape)."""
        with device_of(values):
            fitness = self._function(**{name: values[name] for name in self.arguments})
        batch = values[self.arguments[0]].shape[0] if self.arguments else None
        if not isinstance(fitness, Tensor) or fitness.dim() != 1 or (batch is not None and len(fitness) != batch):
            found = tuple(fitness.shape) if isinstance(fitness, Tensor) else type(fitness).__name__
            raise EnvironmentLoadError(
                f"the task's fitness gave {found}, expected a tensor of shape ({batch},)",
                "return one number per environment, such as `variable[:, 0]`",
            )
        return fitness.detach().to(torch.float32)
