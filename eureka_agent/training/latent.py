"""Latent rewards: each step is paid what fits the fitness of whole episodes best.

The components of a reward are factors z of a step, and its total is the designer's guess. A network
with one hidden layer, drawn once, maps both to what a step is paid, f(z) = w · φ(z). Its output
layer w is fitted so that the sum over an episode is the episode's fitness (LaRe, Qu et al.,
arXiv:2412.11120), by ridge regression on the sums of φ (least squares on episodes' returns: Efroni
et al., arXiv:2008.06036). So it is exact after every episode, and of the episodes only their sums
are kept. Until episodes differ in fitness, the designer's guess is paid.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from eureka_agent.records import LearnedReward
from eureka_agent.training.learned import LearnedPay, Lived, sizes_of

HIDDEN = 32
"""Units of the hidden layer."""
RIDGE = 10.0
"""Weight of the prior: so many episodes that are 1 in one feature throughout, and 0 in the rest."""
GUESS = 1.0
"""Prior weight of the designer's total, in deviations of the fitness for a total of its size."""
_INTERCEPT, _GUESS = 0, 2
"""Places among the features: an episode's constant, a step's constant, the total, the factors, the
hidden layer."""


class LatentReward(LearnedPay):
    """Pay that is fitted to a training's own episodes."""

    kept = ("sizes", "hidden", "bias", "weights")

    def __init__(self, seed: int, longest: int) -> None:
        """`seed`: of the hidden layer; `longest`: steps of an episode at most."""
        super().__init__()
        self._seed, self._longest = seed, longest
        self._names: tuple[str, ...] = ()

    def pay(self, lived: Lived) -> Tensor:
        self._names, factors = tuple(lived.components), lived.factors
        if not self._state:
            self._begin(factors)
        features = self._of(factors)
        paid = features @ self._state["weights"][1:].to(features)
        self._learn(features, lived)
        return paid

    def _learn(self, features: Tensor, lived: Lived) -> None:
        """Fit the weights to the episodes that ended in these steps."""
        state = self._state
        running = features.cumsum(dim=0) + state["sums"]
        begun = torch.zeros_like(state["sums"])
        episodes, results = [], []
        for step, row in lived.ended.nonzero().tolist():
            episodes.append(running[step, row] - begun[row])
            results.append(lived.fitness[step, row])
            begun[row] = running[step, row]
        state["sums"].copy_(running[-1] - begun)
        if not episodes:
            return
        sums = torch.stack(episodes).double() / self._longest
        inputs = torch.cat([torch.ones_like(sums[:, :1]), sums], dim=1)
        targets = torch.stack(results).double()
        state["products"] += inputs.T @ inputs
        state["moments"] += inputs.T @ targets
        ones = torch.ones_like(targets)
        state["fitness"] += torch.stack([ones, targets, targets.square()]).sum(dim=1)
        deviation = self._deviation()
        if deviation > 0.0:
            prior = self._prior()
            ridge = torch.full_like(prior, RIDGE)
            ridge[_INTERCEPT] = 1e-6
            matrix = state["products"] + torch.diag(ridge)
            wanted = state["moments"] / deviation + ridge * prior
            weights, fault = torch.linalg.solve_ex(matrix, wanted)
            if not fault and bool(weights.isfinite().all()):  # else rounding has eaten the prior
                state["weights"].copy_(weights)

    def learned(self) -> LearnedReward:
        state = self._state
        weights = state["weights"]
        hidden = weights[-HIDDEN:] * (1.0 - state["bias"].double().tanh().square())
        slopes = weights[_GUESS:-HIDDEN] + state["hidden"].double() @ hidden
        episodes, deviation = float(state["fitness"][0]), self._deviation()
        explained = 0.0
        if deviation > 0.0:
            fit = 2.0 * weights @ state["moments"] / deviation
            fit -= weights @ state["products"] @ weights
            mean = state["fitness"][1] / deviation
            explained = max(0.0, float((fit - mean.square() / episodes) / episodes))
        guess, *rest = slopes.tolist()
        return LearnedReward(
            episodes=round(episodes),
            explained=explained,
            guess=guess,
            slopes=dict(zip(self._names, rest, strict=True)),
        )

    def _begin(self, factors: Tensor) -> None:
        """Empty state. The factors' sizes are those of the first iteration."""
        count, device = factors.shape[-1], factors.device
        generator = torch.Generator().manual_seed(self._seed)
        numbers = 2 + count + HIDDEN
        double = partial(torch.zeros, dtype=torch.float64, device=device)
        self._state = {
            "sizes": sizes_of(factors.flatten(0, 1)),
            "hidden": torch.randn(count, HIDDEN, generator=generator).to(device) / count**0.5,
            "bias": 0.5 * torch.randn(HIDDEN, generator=generator).to(device),
            "sums": torch.zeros(factors.shape[1], numbers - 1, device=device),
            "products": double(numbers, numbers),
            "moments": double(numbers),
            "fitness": double(3),
            "weights": double(numbers),
        }
        self._state["weights"].copy_(self._prior())

    def _of(self, factors: Tensor) -> Tensor:
        """Features of steps: a constant, the factors, the hidden layer. Factors are neither centred
        nor bounded: a guess must stay what it is, also for what no step of the beginning shows."""
        state = self._state
        scaled = factors / state["sizes"]
        hidden = (scaled @ state["hidden"] + state["bias"]).tanh()
        return torch.cat([torch.ones_like(scaled[..., :1]), scaled, hidden], dim=-1)

    def _prior(self) -> Tensor:
        prior = torch.zeros_like(self._state["weights"])
        prior[_GUESS] = GUESS
        return prior

    def _deviation(self) -> float:
        """Deviation of the episodes' fitness; 0 before they differ."""
        count, first, second = self._state["fitness"].tolist()
        if not count:
            return 0.0
        variance = second / count - (first / count) ** 2
        return float(variance**0.5) if variance > 1e-12 * (second / count) else 0.0
