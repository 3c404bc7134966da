"""Distributions of actions: the only place that tells a Gaussian from a categorical one. The first
dimension is the member; no operation mixes members. Only operations whose rounding in torch does
not depend on a number's place in a tensor are used."""

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
    """The distribution of an environment's actions."""
    choices = environment.action_choices
    return Categorical(choices) if choices else Gaussian(environment.num_actions)


def distribution_of_file(
    metadata: Mapping[str, str], num_outputs: int
) -> ActionDistribution | None:
    """A policy file's distribution (default: Gaussian); None if `num_outputs` does not fit."""
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
