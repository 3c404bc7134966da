"""Values of parameters at which a trained policy still works (Ma et al. 2024, DrEureka)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from eureka_agent.randomisation_records import ParameterPrior, Prior, ValueScore
from eureka_agent.records import ParameterSpec

VALUES_PER_SIDE = 4
"""Scored values on each side of a default that has room there."""


def values_to_score(parameter: ParameterSpec) -> tuple[float, ...]:
    """Values of a parameter over its safe range, ascending, with its default among them: in equal
    ratios where all are positive, else in equal steps."""
    values = {parameter.default}
    for end in {parameter.low, parameter.high} - {parameter.default}:
        shares = ((place + 1) / VALUES_PER_SIDE for place in range(VALUES_PER_SIDE - 1))
        values |= {end, *(_between(parameter.default, end, share) for share in shares)}
    return tuple(sorted(values))


def _between(default: float, end: float, share: float) -> float:
    ratios = default > 0 and end > 0
    value = default * (end / default) ** share if ratios else default + share * (end - default)
    rounded = float(f"{value:.4g}")
    return rounded if min(default, end) < rounded < max(default, end) else value


def prior_of(
    parameters: Sequence[ParameterSpec],
    base: float,
    floor: float,
    scores: Mapping[tuple[str, float], float | None],
    episodes: int,
) -> Prior:
    """The prior from scores by parameter and value; those of the defaults are `base`."""
    found = Prior(base=base, floor=floor, episodes=episodes, parameters=())
    priors = []
    for each in parameters:
        known = {value: scores.get((each.name, value)) for value in values_to_score(each)}
        known[each.default] = base
        values = list(known)
        middle = values.index(each.default)
        bounds = [
            _last_that_works(side, known, found.threshold)
            for side in (values[middle::-1], values[middle:])
        ]
        listed = tuple(ValueScore(value=value, fitness=known[value]) for value in values)
        priors.append(ParameterPrior(name=each.name, scores=listed, low=bounds[0], high=bounds[1]))
    return found.model_copy(update={"parameters": tuple(priors)})


def _last_that_works(
    values: Sequence[float], fitness: Mapping[float, float | None], threshold: float
) -> float:
    """The value before the first that does not work, from the default on."""
    for last, value in itertools.pairwise(values):
        reached = fitness[value]
        if reached is None or reached < threshold:
            return last
    return values[-1]
