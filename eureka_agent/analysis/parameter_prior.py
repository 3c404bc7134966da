"""Prior of an environment's parameters: the values at which a trained policy still works (Ma et al.
2024, the reward-aware physics prior)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eureka_agent.randomisation_records import ParameterPrior, Prior, ValueScore
from eureka_agent.records import ParameterSpec

VALUES_PER_SIDE = 4
"""Scored values on each side of a default that has room there."""


_PLACES = tuple((place + 1) / VALUES_PER_SIDE for place in range(VALUES_PER_SIDE))
"""Shares of the way from the default to an end."""


def values_to_score(parameter: ParameterSpec) -> tuple[float, ...]:
    """Values of a parameter over its safe range, ascending, with its default among them: in equal
    ratios where all are positive, else in equal steps."""
    values = {parameter.default}
    for end in (parameter.low, parameter.high):
        if end != parameter.default:
            values |= {_between(parameter.default, end, place) for place in _PLACES}
    return tuple(sorted(values))


def _between(default: float, end: float, share: float) -> float:
    """The value at a share of the way from the default to an end."""
    if share == 1.0:
        return end
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
    of_parameters = [_of_parameter(each, scores, found) for each in parameters]
    return found.model_copy(update={"parameters": tuple(of_parameters)})


def _of_parameter(
    parameter: ParameterSpec, scores: Mapping[tuple[str, float], float | None], prior: Prior
) -> ParameterPrior:
    values = values_to_score(parameter)
    known = {
        value: prior.base if value == parameter.default else scores[parameter.name, value]
        for value in values
    }
    middle = values.index(parameter.default)
    return ParameterPrior(
        name=parameter.name,
        scores=tuple(ValueScore(value=value, fitness=known[value]) for value in values),
        low=_last_that_works(values[middle::-1], known, prior.threshold),
        high=_last_that_works(values[middle:], known, prior.threshold),
    )


def _last_that_works(
    values: Sequence[float], fitness: Mapping[float, float | None], threshold: float
) -> float:
    """The value before the first that does not work, from the default on."""
    last = values[0]
    for value in values[1:]:
        reached = fitness[value]
        if reached is None or reached < threshold:
            break
        last = value
    return last
