"""Blended rewards: the task's own fitness, and as much of the designer's reward as helps it.

A step is paid its part of the fitness, and the designer's total times a weight of the step's
region. A weight rises where what it pays for pulls the policy the way the fitness does, and falls
where it pulls the other way (behaviour alignment, BARFI: Gupta et al., arXiv:2310.19007). Of the
implicit gradient only the direction is taken: the cosine between two policy gradients, that of the
fitness and that of the region's part of the total, of a policy linear in the observation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.records import LearnedBlend
from eureka_agent.training.learned import LearnedPay, Lived, sizes_of

REGIONS = 8
"""Regions of the factors, around steps of the first iteration."""
RATE = 0.1
"""Change of a weight in an iteration for two gradients of one direction."""
_MEMORY = 0.9
"""Share of the gradients before that is kept in each iteration."""


class BlendedReward(LearnedPay):
    """Pay that is weighed by a training's own gradients."""

    kept = ("scales", "centres", "weights", "sizes")

    def __init__(self, seed: int, discount: float) -> None:
        """`seed`: of the regions."""
        super().__init__()
        self._seed, self._discount = seed, discount
        self._shares = torch.ones(1)

    def pay(self, lived: Lived) -> Tensor:
        if not self._state:
            self._begin(lived)
        state = self._state
        squares = torch.stack([lived.gained.square().mean(), lived.total.square().mean()])
        state["squares"] += squares.double()
        state["iterations"] += 1.0
        sizes = (state["squares"] / state["iterations"]).sqrt().float()
        state["sizes"].copy_(torch.where(sizes > 0.0, sizes, 1.0))
        gained, total = lived.gained / state["sizes"][0], lived.total / state["sizes"][1]
        regions = self._regions(lived.factors)
        self._shares = state["weights"][regions]
        paid = gained + self._shares * total
        parts = torch.nn.functional.one_hot(regions, len(state["weights"])) * total.unsqueeze(-1)
        self._learn(torch.cat([gained.unsqueeze(-1), parts], dim=-1), lived)
        return paid

    def learned(self) -> LearnedBlend:
        return LearnedBlend(
            weight=float(self._shares.mean()), regions=tuple(self._state["weights"].tolist())
        )

    def _begin(self, lived: Lived) -> None:
        """Empty state. Regions are those nearest to steps drawn from the first iteration."""
        rows = lived.factors.flatten(0, 1)
        generator = torch.Generator().manual_seed(self._seed)
        drawn = torch.randperm(len(rows), generator=generator)[:REGIONS].to(rows.device)
        device, scales = rows.device, sizes_of(rows - rows.mean(dim=0))
        numbers = lived.scores.shape[1] * lived.observations.shape[1]
        self._state = {
            "scales": scales,
            "centres": rows[drawn] / scales,
            "weights": torch.ones(len(drawn), device=device),
            "squares": torch.zeros(2, dtype=torch.float64, device=device),
            "iterations": torch.zeros((), dtype=torch.float64, device=device),
            "sizes": torch.ones(2, device=device),
            "gradients": torch.zeros(1 + len(drawn), numbers, device=device),
        }

    def _regions(self, factors: Tensor) -> Tensor:
        """Number of the nearest centre, (steps, num_envs), int64."""
        apart = (factors / self._state["scales"]).unsqueeze(-2) - self._state["centres"]
        return apart.square().sum(dim=-1).argmin(dim=-1)

    def _learn(self, parts: Tensor, lived: Lived) -> None:
        """Move the weights. `parts`: (steps, num_envs, 1 + regions), the fitness first."""
        ahead, returns = torch.zeros_like(parts[0]), torch.empty_like(parts)
        for step in reversed(range(len(parts))):
            ahead = parts[step] + self._discount * ahead * ~lived.ended[step].unsqueeze(-1)
            returns[step] = ahead
        advantages = (returns - returns.mean(dim=1, keepdim=True)).flatten(0, 1)
        weighted = advantages.T.unsqueeze(1) * lived.scores.T  # (1 + regions, outputs, rows)
        gradients = (weighted.flatten(0, 1) @ lived.observations).view(len(weighted), -1)
        state = self._state
        state["gradients"] = _MEMORY * state["gradients"] + (1.0 - _MEMORY) * gradients
        wanted, pulled = state["gradients"][0], state["gradients"][1:]
        pulled = torch.cat([pulled, pulled.sum(dim=0, keepdim=True)])  # the whole total last
        lengths = pulled.norm(dim=1) * wanted.norm()
        cosines = (pulled @ wanted) / lengths.clamp(min=1e-12)
        weights = state["weights"] + RATE * (cosines[:-1] + cosines[-1])
        state["weights"].copy_(weights.clamp(0.0, 1.0))
