"""Records of the search over distributions of an environment's parameters (Ma et al. 2024,
DrEureka): prior, distributions, scores, choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, FiniteFloat

from eureka_agent.base_record import Record
from eureka_agent.parameters import distribution_text

ParameterRanges = dict[str, tuple[FiniteFloat, FiniteFloat]]
"""A distribution of parameters: bounds by name (`eureka_agent.parameters.Distribution`)."""


class ValueScore(Record):
    """Fitness of a policy where one parameter has another value than its default."""

    value: FiniteFloat
    fitness: FiniteFloat | None
    """Mean over the episodes; None where it could not be scored."""


class ParameterPrior(Record):
    """Values of a parameter at which the policy works."""

    name: str
    scores: tuple[ValueScore, ...]
    """Scores by value, the default included."""
    low: FiniteFloat
    """Least value of the interval around the default in which it works at every scored value."""
    high: FiniteFloat


class Prior(Record):
    """Values of all parameters at which the policy works, each of them alone."""

    base: FiniteFloat
    """Fitness under the defaults."""
    floor: FiniteFloat
    """Fitness at the beginning of the policy's own training."""
    episodes: int
    """Episodes of a score."""
    parameters: tuple[ParameterPrior, ...]

    @property
    def threshold(self) -> float:
        """Fitness from which a value works: half of what training gained."""
        return self.floor + 0.5 * (self.base - self.floor)

    @property
    def ranges(self) -> ParameterRanges:
        """The prior as a distribution."""
        return {each.name: (each.low, each.high) for each in self.parameters}


class CurriculumStage(Record):
    """A distribution, and the share of a training's env steps at which it begins."""

    begins: Annotated[FiniteFloat, Field(ge=0, lt=1)]
    parameters: ParameterRanges


class RandomisedParameters(Record):
    """A proposal for a training's distributions: one, or a curriculum of several."""

    name: str
    """`d1`, `d2`, … in the order of the proposals."""
    reason: str
    author: str
    """`"offline"` or the model's name."""
    curriculum: tuple[CurriculumStage, ...] = Field(min_length=1)
    """The first stage begins at 0."""
    notes: tuple[str, ...] = ()
    """Changes to what was proposed, such as bounds clipped to the safe range."""

    @property
    def text(self) -> str:
        """`mass=0.5..2`, or with stages `defaults; from 50 %: mass=0.5..2`."""
        parts = []
        for stage in self.curriculum:
            ranges = distribution_text(stage.parameters).replace(",", ", ") or "defaults"
            begins = f"from {100 * stage.begins:.0f} %: " if stage.begins else ""
            parts.append(begins + ranges)
        return "; ".join(parts)


class HeldOutFitness(Record):
    """Fitness over episodes whose parameters are drawn from the whole safe ranges."""

    mean: FiniteFloat
    worst_quarter: FiniteFloat
    """Mean over the quarter of the episodes with the lowest fitness."""

    @classmethod
    def of(cls, fitness: Sequence[float]) -> HeldOutFitness:
        """Fitness from its values in single episodes."""
        worst = sorted(fitness)[: -(-len(fitness) // 4)]
        return cls(mean=sum(fitness) / len(fitness), worst_quarter=sum(worst) / len(worst))


class RangeScore(Record):
    """Scores of one training's policy over the whole safe ranges."""

    seed: int
    """Seed of the training."""
    fitness: FiniteFloat | None
    """Under the defaults."""
    choice: HeldOutFitness | None
    """Fitness to choose the best distribution by; None, as the next, where it could not be
    scored."""
    held_out: HeldOutFitness | None
    """From parameters by which nothing was chosen."""


class Randomisation(Record):
    """Search over distributions for the reward of one attempt, as far as it got. Each distribution
    is an attempt of its own, `<attempt>+<name>`."""

    prior: Prior | None = None
    distributions: tuple[RandomisedParameters, ...] = ()
    best: str | None = None
    """Name of the best distribution; None before the end, and where nothing could be scored."""
    seed: int | None = None
    """Seed of its training whose score is nearest to their mean."""
    text: str = ""
    """Reason for an end without a best distribution."""
