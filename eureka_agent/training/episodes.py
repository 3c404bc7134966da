"""Fitness of episodes from per-step fitness, with sums that carry over between iterations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.task import FitnessReduction


@dataclass
class EndedEpisodes:
    """Each member's full episodes that ended in an iteration."""

    counted: Tensor
    """Steps at which they ended. Shape: (members, steps, num_envs), bool."""
    count: Tensor
    """Shape: (members,), as the next two."""
    fitness_sum: Tensor
    length_sum: Tensor


class RunningFitness:
    """Fitness of each environment's current episode."""

    def __init__(
        self, shape: tuple[int, ...], reduction: FitnessReduction, device: torch.device | str
    ) -> None:
        self.reduction: FitnessReduction = reduction
        self.length = torch.zeros(shape, device=device)
        self.value = torch.zeros(shape, device=device)

    def select(self, members: int) -> RunningFitness:
        """A view of the leading members' part."""
        part = object.__new__(RunningFitness)
        part.reduction = self.reduction
        part.length, part.value = self.length[:members], self.value[:members]
        return part

    def add(self, fitness: Tensor) -> None:
        """Add one step."""
        if self.reduction == "last":
            self.value.copy_(fitness)
        elif self.reduction == "max":
            # the first step of an episode has no maximum before it
            self.value.copy_(
                torch.where(self.length > 0, torch.maximum(self.value, fitness), fitness)
            )
        else:
            self.value += fitness
        self.length += 1.0

    def result(self) -> Tensor:
        """Fitness of every episode so far; the next `add` may change it in place."""
        return self.value / self.length.clamp(min=1.0) if self.reduction == "mean" else self.value

    def restart(self, ended: Tensor) -> None:
        """Start a new episode where `ended` (bool)."""
        going_on = ~ended
        self.value *= going_on
        self.length *= going_on


class EpisodeTracker:
    """Episodes of K members. A member's environments start at random points of an episode, so that
    not all are truncated at once; this first, shortened episode does not count."""

    def __init__(
        self, members: int, num_envs: int, reduction: FitnessReduction, device: torch.device | str
    ) -> None:
        self._running = RunningFitness((members, num_envs), reduction, device)
        self._full = torch.zeros(members, num_envs, dtype=torch.bool, device=device)

    def reset(self, member: int) -> None:
        """Start a new training, whose first episodes are shortened."""
        self._running.restart(_row_mask(self._full, member))
        self._full[member] = False

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        return {"full": self._full, "length": self._running.length, "value": self._running.value}

    def update(self, fitness: Tensor, ended: Tensor) -> EndedEpisodes:
        """Add an iteration of the leading members. Shape of both: (members, steps, num_envs)."""
        members = len(fitness)
        running, full = self._running.select(members), self._full[:members]
        values, lengths = torch.empty_like(fitness), torch.empty_like(fitness)
        counted = torch.empty_like(ended)
        for step in range(fitness.shape[1]):
            running.add(fitness[:, step])
            values[:, step] = running.result()
            lengths[:, step] = running.length
            torch.logical_and(ended[:, step], full, out=counted[:, step])
            full |= ended[:, step]
            running.restart(ended[:, step])
        weights = counted.float()
        parts = (torch.ones_like(values), values, lengths)
        return EndedEpisodes(counted, *((part * weights).flatten(1).sum(dim=1) for part in parts))


def _row_mask(like: Tensor, row: int) -> Tensor:
    mask = torch.zeros_like(like, dtype=torch.bool)
    mask[row] = True
    return mask
