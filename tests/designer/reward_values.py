"""Running a reward source on tensors, as a training does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from eureka_agent.records import TaskDescription, VariableSpec
from eureka_agent.task import Variable
from eureka_agent.training.reward import RewardFunction


def reward_function(source: str, variables: Sequence[VariableSpec]) -> RewardFunction:
    """Loaded with the trainer's checks of names and contract."""
    return RewardFunction.from_source(
        source,
        [
            Variable(
                each.name, each.shape, each.unit, each.frame, each.doc, each.range, each.private
            )
            for each in variables
        ],
    )


def states(
    description: TaskDescription, scale: float, batch: int = 8, seed: int = 0
) -> dict[str, Tensor]:
    """Gaussian values of every variable and of the step before. Shape of each: (batch,
    *variable.shape)."""
    generator = torch.Generator().manual_seed(seed)
    names = [
        (prefix + each.name, each.shape)
        for each in description.variables
        for prefix in ("", "previous_")
    ]
    return {name: scale * torch.randn(batch, *shape, generator=generator) for name, shape in names}


def evaluate(
    source: str, description: TaskDescription, changed: Mapping[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Total and components where every variable is 0 but for `changed`; the step before is the same
    unless changed as well."""
    batch = len(next(iter(changed.values())))
    values = {each.name: torch.zeros(batch, *each.shape) for each in description.variables} | dict(
        changed
    )
    previous = {f"previous_{each.name}": values[each.name] for each in description.variables}
    return reward_function(source, description.variables)(previous | values)
