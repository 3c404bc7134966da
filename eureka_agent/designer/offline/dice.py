"""The designer's choices: how far they stray from the most sensible one, drawn from a generator of
the request's own."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from eureka_agent.designer.offline.operands import rounded

ChoiceT = TypeVar("ChoiceT")


@dataclass(frozen=True)
class Theme:
    """How a fresh reward is composed."""

    name: str
    spread: float
    """Standard deviation of the logarithm of every weight and temperature around its default."""
    explore: float
    """Probability of taking another variable or form than the most plausible."""
    support: float = 1.0
    """Factor on the odds of terms that nobody asked for."""
    support_weight: float = 1.0
    """Factor on their weights."""


SENSIBLE = Theme("the most sensible guess", spread=0.08, explore=0.0)
THEMES = (
    SENSIBLE,
    Theme("what was asked for and little else", spread=0.2, explore=0.0, support=0.15),
    Theme("the sensible terms with other weights", spread=0.7, explore=0.1),
    Theme(
        "strong care for posture and survival",
        spread=0.3,
        explore=0.1,
        support=1.5,
        support_weight=2.0,
    ),
    Theme("other shapes of the main term", spread=0.4, explore=0.5),
    Theme("light penalties", spread=0.4, explore=0.2, support_weight=0.3),
    Theme("a free draw", spread=0.8, explore=0.4),
    Theme("a free draw with many terms", spread=0.8, explore=0.4, support=2.0),
)


class Dice:
    """Draws of one proposal."""

    def __init__(self, generator: random.Random, theme: Theme = SENSIBLE) -> None:
        self.generator = generator
        self.theme = theme

    def around(self, value: float) -> float:
        """`value` times a log-normal factor, with two significant digits."""
        return rounded(value * math.exp(self.generator.gauss(0.0, self.theme.spread)), digits=2)

    def explores(self) -> bool:
        """Whether this choice is to be another than the first."""
        return self.generator.random() < self.theme.explore

    def first_or_other(self, choices: Sequence[ChoiceT]) -> ChoiceT:
        """The first choice, or now and then one of the next three. `choices` must not be empty."""
        if len(choices) == 1 or not self.explores():
            return choices[0]
        return self.generator.choice(choices[1:4])

    def includes(self, probability: float) -> bool:
        """Whether an optional term of this prior probability is in. The sensible theme takes the
        likely ones."""
        if self.theme is SENSIBLE:
            return probability >= 0.5
        odds = (
            probability / (1.0 - probability) * self.theme.support
            if probability < 1.0
            else math.inf
        )
        return self.generator.random() < (1.0 if math.isinf(odds) else odds / (1.0 + odds))
