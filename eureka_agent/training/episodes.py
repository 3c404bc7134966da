"""From per-step fitness to the fitness of episodes: sums per environment that go on from one
iteration to the next."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.task import FitnessReduction


@dataclass
class EndedEpisodes:
    """The full episodes of each member that ended in an iteration."""

    counted: Tensor
    """Where they ended. Shape: (members, steps, num_envs), bool."""
    count: Tensor
    """Shape: (members,), as are the next two."""
    fitness_sum: Tensor
    length_sum: Tensor


class RunningFitness:
    """Fitness of the episode under way in each of some environments, whatever their shape."""

    def __init__(
        self, shape: tuple[int, ...], reduction: FitnessReduction, device: torch.device | str
    ) -> None:
        self.reduction: FitnessReduction = reduction
        self.length = torch.zeros(shape, device=device)
        self.value = torch.zeros(shape, device=device)

    def select(self, members: int) -> RunningFitness:
        """The leading members' part, as a view."""
        part = object.__new__(RunningFitness)
        part.reduction, part.length, part.value = (
            self.reduction,
            self.length[:members],
            self.value[:members],
        )
        return part

    def add(self, fitness: Tensor) -> None:
        """Take in one step."""
        if self.reduction == "last":
            self.value.copy_(fitness)
        elif self.reduction == "max":
            # an episode's first step has nothing to be compared with
            self.value.copy_(
                torch.where(self.length > 0, torch.maximum(self.value, fitness), fitness)
            )
        else:
            self.value += fitness
        self.length += 1.0

    def result(self) -> Tensor:
        """Fitness of every episode up to here; the next call of `add` may change it."""
        return self.value / self.length.clamp(min=1.0) if self.reduction == "mean" else self.value

    def restart(self, ended: Tensor) -> None:
        """Begin a new episode where `ended` (bool)."""
        going_on = ~ended
        self.value *= going_on
        self.length *= going_on


class EpisodeTracker:
    """Episodes of K members with `num_envs` environments each.

    A member's environments start at random points of an episode's length, so that not all are cut
    off at once. That first, shortened episode says little about the policy and counts nowhere.
    """

    def __init__(
        self, members: int, num_envs: int, reduction: FitnessReduction, device: torch.device | str
    ) -> None:
        self._running = RunningFitness((members, num_envs), reduction, device)
        self._full = torch.zeros(members, num_envs, dtype=torch.bool, device=device)

    def reset(self, member: int) -> None:
        """A new training: its first episodes begin shortened."""
        self._running.restart(_row_mask(self._full, member))
        self._full[member] = False

    def member_tensors(self) -> dict[str, Tensor]:
        """All that it knows, a row a member; live."""
        return {"full": self._full, "length": self._running.length, "value": self._running.value}

    def update(self, fitness: Tensor, ended: Tensor) -> EndedEpisodes:
        """Take in an iteration of the first members. Shape of both: (members, steps, num_envs)."""
        members = len(fitness)
        running, full = self._running.select(members), self._full[:members]
        values, lengths, counted = (
            torch.empty_like(fitness),
            torch.empty_like(fitness),
            torch.empty_like(ended),
        )
        for step in range(fitness.shape[1]):
            running.add(fitness[:, step])
            values[:, step] = running.result()
            lengths[:, step] = running.length
            torch.logical_and(ended[:, step], full, out=counted[:, step])
            full |= ended[:, step]
            running.restart(ended[:, step])
        weights = counted.float()
        return EndedEpisodes(
            counted,
            *(
                (part * weights).flatten(1).sum(dim=1)
                for part in (torch.ones_like(values), values, lengths)
            ),
        )


def _row_mask(like: Tensor, row: int) -> Tensor:
    mask = torch.zeros_like(like, dtype=torch.bool)
    mask[row] = True
    return mask
