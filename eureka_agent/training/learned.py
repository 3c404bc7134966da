"""What trainings learn to pay: the kinds of rewards that are more than their code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from eureka_agent.records import LearnedBlend, LearnedReward

PREFIX = "reward."
"""Begin of the names of its tensors in the file of a policy."""
_LEAST_SIZE = 1e-6


@dataclass(frozen=True)
class Lived:
    """One training's iteration. Shapes begin with (steps, num_envs), where nothing else is said."""

    total: Tensor
    """What the reward's code would pay."""
    components: Mapping[str, Tensor]
    ended: Tensor
    """bool."""
    fitness: Tensor
    """Fitness of the episode up to each step."""
    gained: Tensor
    """Each step's own part of the fitness."""
    observations: Tensor
    """Normalised, with a last column of ones. Shape: (steps * num_envs, num_observations + 1)."""
    scores: Tensor
    """Gradients of each action's log-probability by the network's outputs. Shape: (steps *
    num_envs, num_outputs)."""


def sizes_of(rows: Tensor) -> Tensor:
    """Root mean square of each column, 1 where it is next to nothing. Shapes: (rows, columns),
    (columns,)."""
    sizes = rows.double().square().mean(dim=0).sqrt().to(rows)
    return torch.where(sizes > _LEAST_SIZE, sizes, 1.0)


class LearnedPay(Protocol):
    """What one training pays. It is determined by its seed and by what that training lived."""

    def pay(self, lived: Lived) -> Tensor:
        """Rewards of an iteration, (steps, num_envs). It learns from the iteration as well."""
        ...

    def state(self) -> Mapping[str, Tensor]:
        """All that goes into a saved state; not copied."""
        ...

    def load(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        """Go on from the `state` of another one of the same training."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Copies of what the pay follows from, float32 by name, for a policy's file."""
        ...

    def learned(self) -> LearnedReward | LearnedBlend:
        """What it has learned, for people and designers."""
        ...
