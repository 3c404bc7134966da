"""Distributions of an environment's parameters, as text and checked. No torch is imported here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from eureka_agent.errors import EurekaError, did_you_mean
from eureka_agent.invocation import command

if TYPE_CHECKING:
    from eureka_agent.records import ParameterSpec, ParameterStage
    from eureka_agent.task import Parameter

    Declared: TypeAlias = Parameter | ParameterSpec

Distribution = Mapping[str, tuple[float, float]]
"""Bounds of uniform distributions by parameter; equal bounds are a fixed value. Parameters that are
not named keep their defaults."""

DEFAULTS: Distribution = MappingProxyType({})
"""The distribution of an unchanged environment."""


class ParameterError(EurekaError):
    """A parameter that an environment does not have, or a value outside of its range."""


def check_distribution(
    distribution: Distribution, declared: Iterable[Declared], environment: str = "NAME"
) -> None:
    """Raises ParameterError for an unknown parameter or bounds outside of its range.
    `environment`: its name in the hint."""
    known = {parameter.name: parameter for parameter in declared}
    hint = f"`{command(f'envs {environment}')}` lists the parameters and their ranges"
    for name, (low, high) in distribution.items():
        given = values_text(low, high)
        if name not in known:
            close = f"; {did_you_mean(name, known)}" if known else ""
            what = f"the environment has no parameter {name!r} (given: {name}={given}){close}"
            raise ParameterError(what, hint)
        allowed = values_text(known[name].low, known[name].high)
        if not low <= high:
            raise ParameterError(
                f"the parameter {name!r} was given {given}, expected the smaller value first,"
                f" within {allowed}",
                hint,
            )
        if not (known[name].low <= low and high <= known[name].high):
            raise ParameterError(
                f"the parameter {name!r} was given {given}, its safe range is {allowed}", hint
            )


def check_curriculum(stages: Sequence[ParameterStage], declared: Iterable[Declared]) -> None:
    """Raises ParameterError as `check_distribution` does, ValueError for stages out of order."""
    known = tuple(declared)
    for stage in stages:
        check_distribution(stage.parameters, known)
    begins = [stage.env_steps for stage in stages]
    if begins != sorted(set(begins)):
        raise ValueError(f"the stages begin at {begins}, expected ascending env steps")


def distribution_at(stages: Sequence[ParameterStage], env_steps: int) -> Distribution:
    """Distribution of the episodes that begin after so many env steps of a training."""
    begun = [stage for stage in stages if stage.env_steps <= env_steps]
    return begun[-1].parameters if begun else DEFAULTS


def values_text(low: float, high: float) -> str:
    """`"0.5..2"`, or one number for equal bounds."""
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def distribution_text(distribution: Distribution) -> str:
    """The distribution as `parse_distribution` reads it."""
    return ",".join(f"{name}={values_text(*bounds)}" for name, bounds in distribution.items())


def parse_distribution(text: str) -> dict[str, tuple[float, float]]:
    """Read `"mass=0.5..2,friction=1.2"`. Raises ParameterError."""
    found: dict[str, tuple[float, float]] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, values = (each.strip() for each in part.partition("="))
        low, dots, high = (each.strip() for each in values.partition(".."))
        try:
            bounds = float(low), float(high if dots else low)
        except ValueError:
            bounds = math.nan, math.nan
        if not name or not all(map(math.isfinite, bounds)):
            raise ParameterError(
                f"{part!r} gives no parameter a value or a range",
                f'expected "mass=0.5..2,friction=1.2"; `{command("envs NAME")}` lists the'
                " parameters",
            )
        if name in found:
            raise ParameterError(f"the parameter {name!r} was given twice", "name it once")
        found[name] = bounds
    return found
