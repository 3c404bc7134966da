"""Random choices of the designer: how far they stray from the most sensible one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from eureka_agent.designer.offline.terms import rounded

ChoiceT = TypeVar("ChoiceT")


class Theme(NamedTuple):
    """How a fresh reward is composed."""

    spread: float
    """Standard deviation of the logarithm of every weight and temperature around its default."""
    explore: float
    """Probability of taking another variable or form than the most plausible."""
    support: float = 1.0
    """Factor on the odds of terms that nobody asked for."""
    support_weight: float = 1.0
    """Factor on their weights."""


SENSIBLE = Theme(0.08, 0.0)
OTHER_SHAPES = Theme(0.4, 0.5)
FREE = Theme(0.8, 0.4)
THEMES = (
    SENSIBLE,
    Theme(0.2, 0.0, support=0.15),  # what was asked for and little else
    Theme(0.7, 0.1),  # the sensible terms with other weights
    Theme(0.3, 0.1, support=1.5, support_weight=2.0),  # strong care for posture and survival
    OTHER_SHAPES,
    Theme(0.4, 0.2, support_weight=0.3),  # light penalties
    FREE,
    Theme(0.8, 0.4, support=2.0),  # a free draw with many terms
)


class Dice(NamedTuple):
    """Draws of one proposal."""

    generator: random.Random
    theme: Theme = SENSIBLE

    def around(self, value: float) -> float:
        """`value` times a log-normal factor, with two significant digits."""
        return rounded(value * math.exp(self.generator.gauss(0.0, self.theme.spread)), digits=2)

    def explores(self) -> bool:
        """True where this choice is to be another than the first."""
        return self.generator.random() < self.theme.explore

    def first_or_other(self, choices: Sequence[ChoiceT]) -> ChoiceT:
        """The first choice, or now and then one of the next three. `choices` must not be empty."""
        if len(choices) == 1 or not self.explores():
            return choices[0]
        return self.generator.choice(choices[1:4])

    def includes(self, probability: float) -> bool:
        """True where an optional term of this odds is in: of the sensible theme the likely ones."""
        if self.theme is SENSIBLE:
            return probability >= 0.5
        drawn, support = self.generator.random(), self.theme.support
        return drawn * (1.0 - probability + probability * support) < probability * support
