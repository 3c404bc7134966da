"""A task's fitness, called with the variables and constants that it names as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from eureka_agent.arguments import bind_arguments
from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.task import Constant, Task, Variable


def device_of(values: Mapping[str, Tensor]) -> AbstractContextManager[object]:
    """Context in which new tensors are on the device of `values` by default."""
    device = next((value.device for value in values.values()), torch.device("cpu"))
    return nullcontext() if device.type == "cpu" else device


class FitnessFunction:
    """A task's per-step fitness, bound to variables and constants by argument name."""

    def __init__(
        self, task: Task, variables: Sequence[Variable], constants: Sequence[Constant] = ()
    ) -> None:
        """Raises EnvironmentLoadError where the fitness reads what the environment lacks."""
        self._function = task.fitness
        self.reduction = task.fitness_reduction
        binding = bind_arguments(task.fitness, variables, True, EnvironmentLoadError, constants)
        self.arguments = binding.variables
        self._constants = binding.constants

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """Fitness of every step, shape (batch,). Shape of each value: (batch, *variable.shape)."""
        with device_of(values):
            fitness = self._function(
                **{name: values[name] for name in self.arguments}, **self._constants
            )
        batch = values[self.arguments[0]].shape[0] if self.arguments else None
        is_tensor = isinstance(fitness, Tensor)
        if not is_tensor or fitness.dim() != 1 or (batch is not None and len(fitness) != batch):
            found = tuple(fitness.shape) if is_tensor else type(fitness).__name__
            raise EnvironmentLoadError(
                f"the task's fitness gave {found}, expected a tensor of shape ({batch},)",
                "return one number per environment, such as `variable[:, 0]`"
                if is_tensor
                else "return a torch tensor: compute with torch's functions in place of numpy's,"
                " such as torch.exp for np.exp",
            )
        return fitness.detach().to(torch.float32)
