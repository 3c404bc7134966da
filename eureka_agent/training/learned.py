"""Pay that trainings learn: the kinds of rewards that are more than their code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.label_records import LearnedLabels
from eureka_agent.records import LearnedBlend, LearnedReward

PREFIX = "reward."
"""Begin of the names of its tensors in the file of a policy."""
_LEAST_SIZE = 1e-6


@dataclass
class Lived:
    """One training's iteration. Shapes begin with (steps, num_envs), where nothing else is said."""

    total: Tensor
    """Total of the reward's code."""
    components: Mapping[str, Tensor]
    ended: Tensor
    """bool."""
    fitness: Tensor
    """Fitness of the episode up to each step."""
    gained: Tensor
    """Each step's own part of the fitness."""
    observations: Tensor
    """Normalised, with a last column of ones. Shape: (steps * num_envs, num_observations + 1)."""
    reached: Tensor
    """Observations of the states reached, not normalised. Shape: (…, num_observations)."""
    scores: Tensor = field(init=False)
    """For blended rewards: gradients of each action's log-probability by the network's outputs.
    Shape: (steps * num_envs, num_outputs)."""
    captions: Tensor = field(init=False)
    """For labelled rewards: codes of the captions of the states reached, int64."""

    @property
    def factors(self) -> Tensor:
        """Total and components. Shape: (steps, num_envs, 1 + components)."""
        return torch.stack([self.total, *self.components.values()], dim=-1)


def sizes_of(rows: Tensor) -> Tensor:
    """Root mean square of each column, 1 where it is next to nothing. Shapes: (rows, columns),
    (columns,)."""
    sizes = rows.double().square().mean(dim=0).sqrt().to(rows)
    return torch.where(sizes > _LEAST_SIZE, sizes, 1.0)


class LearnedPay(ABC):
    """Pay of one training, determined by its seed and by what that training lived."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the tensors that the pay of a step follows from."""

    def __init__(self) -> None:
        """Know nothing, until the first iteration or `load`."""
        self._state: dict[str, Tensor] = {}

    @abstractmethod
    def pay(self, lived: Lived) -> Tensor:
        """Rewards of an iteration by what was known before it, (steps, num_envs); then learn from
        it."""

    @abstractmethod
    def learned(self) -> LearnedReward | LearnedBlend | LearnedLabels:
        """Its knowledge, for people and designers."""

    def state(self) -> Mapping[str, Tensor]:
        """All that goes into a saved state; not copied."""
        return self._state

    def load(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        """Go on from the `state` of another one of the same training."""
        self._state = {name: value.to(device, copy=True) for name, value in state.items()}

    def tensors(self) -> dict[str, Tensor]:
        """Copies of what the pay follows from, float32 by name, for a policy's file."""
        return {name: self._state[name].float().to("cpu", copy=True) for name in self.kept}
