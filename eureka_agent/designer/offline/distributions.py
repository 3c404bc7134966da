"""Distributions of parameters without a model: a fixed family from the prior."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.randomisation_records import CurriculumStage, Prior, RandomisedParameters
from eureka_agent.records import ParameterRanges, ParameterSpec

_NAMES = {0.0: "the defaults", 1.0: "the prior", 2.0: "the whole safe ranges"}
"""Widths; there are others between them."""
_WIDTHS = (2.0, 1.5, 1.0, 0.5, 1.75, 1.25, 0.75, 0.25)
_FAMILY: list[list[tuple[float, float]]] = [
    *([(0.0, 1.0)], [(0.0, 0.0), (0.5, 1.0)], [(0.0, 0.5)], [(0.0, 1.5)], [(0.0, 2.0)]),
    *([(0.0, 0.0), (0.5, 2.0)], [(0.0, 0.5), (0.33, 1.0), (0.67, 2.0)], [(0.0, 1.0), (0.5, 2.0)]),
    *([(0.0, width)] for width in _WIDTHS),
    *([(0.0, 0.0), (begins, width)] for begins in (0.25, 0.5, 0.75) for width in _WIDTHS),
]
"""Curricula in the order in which they are tried: shares of the training with widths."""


def offline_distributions(
    parameters: Sequence[ParameterSpec],
    prior: Prior,
    known: Sequence[RandomisedParameters],
    count: int,
) -> list[RandomisedParameters]:
    """The next `count` of the family that are not among the `known`, named after them. Fewer where
    the safe ranges leave no room for more."""
    found, most = [*known], len(known) + count
    for stages in _FAMILY:
        curriculum = tuple(
            CurriculumStage(begins=begins, parameters=_widened(parameters, prior, width))
            for begins, width in stages
        )
        new = curriculum not in [each.curriculum for each in found]
        if new and any(each.parameters for each in curriculum) and len(found) < most:
            name, reason = f"d{len(found) + 1}", ", then ".join(_said(width) for _, width in stages)
            made = {"name": name, "reason": reason, "author": "offline", "curriculum": curriculum}
            found.append(RandomisedParameters.model_validate(made))
    return found[len(known) :]


def _widened(parameters: Sequence[ParameterSpec], prior: Prior, width: float) -> ParameterRanges:
    """The ranges of a width, without parameters that keep their defaults."""
    found: ParameterRanges = {}
    for each in parameters:
        ends = zip(prior.ranges[each.name], (each.low, each.high), strict=True)
        low, high = (_end([each.default, *both], width) for both in ends)
        if (low, high) != (each.default, each.default):
            found[each.name] = low, high
    return found


def _end(ends: list[float], width: float) -> float:
    """An end of a range: default, end of the prior, safe end, or between two of them."""
    inner, outer, share = ends[int(width)], ends[min(2, int(width) + 1)], width % 1
    value = float(f"{inner + share * (outer - inner):.4g}") if share else inner
    return sorted((inner, value, outer))[1]


def _said(width: float) -> str:
    return _NAMES.get(width) or f"{width % 1:.0%} of the way beyond {_NAMES[float(int(width))]}"
