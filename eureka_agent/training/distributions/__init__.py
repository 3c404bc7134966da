"""Distributions of actions: the one place that tells a Gaussian from a categorical one.

Tensors have K members in front, and an operation never mixes two of them. Everything is made of
sums, maxima, `exp`, `log` and `expm1`, which torch rounds alike wherever a number lies in a tensor:
a member's numbers do not depend on its slot.
"""

from __future__ import annotations

from collections.abc import Mapping

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.distributions.categorical import CATEGORICAL, Categorical
from eureka_agent.training.distributions.gaussian import Gaussian
from eureka_agent.training.distributions.interface import ActionDistribution, Likelihood

__all__ = [
    "ActionDistribution",
    "Categorical",
    "Gaussian",
    "Likelihood",
    "distribution_of",
    "distribution_of_file",
]


def distribution_of(environment: VecTask | type[VecTask]) -> ActionDistribution:
    """The distribution for an environment's actions."""
    choices = environment.action_choices
    return Categorical(choices) if choices else Gaussian(environment.num_actions)


def distribution_of_file(
    metadata: Mapping[str, str], num_outputs: int
) -> ActionDistribution | None:
    """The distribution that a policy's file names, whose network has so many outputs; None where
    these do not fit. A file that names none is of a Gaussian."""
    if "distribution" not in metadata:
        return Gaussian(num_outputs)
    parts = metadata.get("choices", "").split(",")
    if metadata["distribution"] != CATEGORICAL or not all(
        part.isascii() and part.isdigit() and 0 < len(part) < 8 for part in parts
    ):
        return None
    choices = tuple(int(part) for part in parts)
    fits = min(choices) > 0 and sum(choices) == num_outputs
    return Categorical(choices) if fits else None
