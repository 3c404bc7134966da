"""Distributions of parameters without a model: a fixed family from the prior."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eureka_agent.randomisation_records import CurriculumStage, Prior, RandomisedParameters
from eureka_agent.records import ParameterRanges, ParameterSpec

AUTHOR = "offline"
_PRIOR, _SAFE = 1.0, 2.0
"""Widths: 0 is the defaults, 1 the prior, 2 the whole safe ranges, with all between them."""
_FAMILY: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.0, _PRIOR),),
    ((0.0, 0.0), (0.5, _PRIOR)),
    ((0.0, 0.5),),
    ((0.0, 1.5),),
    ((0.0, _SAFE),),
    ((0.0, 0.0), (0.5, _SAFE)),
    ((0.0, 0.5), (0.33, _PRIOR), (0.67, _SAFE)),
    ((0.0, _PRIOR), (0.5, _SAFE)),
)
"""Curricula in the order in which they are tried: shares of the training with widths."""
_WARM_UPS = (0.0, 0.25, 0.5, 0.75)
_WIDTHS = (_SAFE, 1.5, _PRIOR, 0.5, 1.75, 1.25, 0.75, 0.25)


def offline_distributions(
    parameters: Sequence[ParameterSpec],
    prior: Prior,
    known: Sequence[RandomisedParameters],
    count: int,
) -> list[RandomisedParameters]:
    """The next `count` of the family that are not among the `known`, named after them. Fewer where
    the safe ranges leave no room for more."""
    seen = [each.curriculum for each in known]
    found: list[RandomisedParameters] = []
    for widths in (*_FAMILY, *_more()):
        if len(found) == count:
            break
        curriculum = tuple(
            CurriculumStage(begins=begins, parameters=_widened(parameters, prior, width))
            for begins, width in widths
        )
        if curriculum in seen or not any(stage.parameters for stage in curriculum):
            continue
        seen.append(curriculum)
        name = f"d{len(known) + len(found) + 1}"
        reason = _reason(widths)
        found.append(
            RandomisedParameters(name=name, reason=reason, author=AUTHOR, curriculum=curriculum)
        )
    return found


def _more() -> Iterator[tuple[tuple[float, float], ...]]:
    """Further widths, from the start and after warm-ups of several lengths."""
    for warm_up in _WARM_UPS:
        for width in _WIDTHS:
            yield ((0.0, 0.0), (warm_up, width)) if warm_up else ((0.0, width),)


def _widened(parameters: Sequence[ParameterSpec], prior: Prior, width: float) -> ParameterRanges:
    """The ranges of a width, without parameters that keep their defaults."""
    ranges = prior.ranges
    found: ParameterRanges = {}
    for each in parameters:
        low, high = (
            _end(each.default, inner, outer, width)
            for inner, outer in zip(ranges[each.name], (each.low, each.high), strict=True)
        )
        if (low, high) != (each.default, each.default):
            found[each.name] = low, high
    return found


def _end(default: float, prior: float, safe: float, width: float) -> float:
    """An end of a range: between default and prior, or between prior and safe range."""
    if width in (_PRIOR, _SAFE):
        return prior if width == _PRIOR else safe
    begin, end, share = (default, prior, width) if width < 1 else (prior, safe, width - 1)
    value = begin + share * (end - begin)
    rounded = float(f"{value:.4g}")
    return rounded if min(begin, end) <= rounded <= max(begin, end) else value


def _reason(widths: Sequence[tuple[float, float]]) -> str:
    """`the defaults at first, the whole safe ranges from 50 % of the training on`."""
    if len(widths) == 1:
        return f"{_words(widths[0][1])} from the start"
    later = (f"{_words(width)} from {100 * begins:.0f} % on" for begins, width in widths[1:])
    return f"{_words(widths[0][1])} at first, {', '.join(later)}"


def _words(width: float) -> str:
    named = {0.0: "the defaults", _PRIOR: "the prior", 0.5: "half of the prior"}
    named |= {_SAFE: "the whole safe ranges", 1.5: "half-way from the prior to the safe ranges"}
    if width in named:
        return named[width]
    if width < 1:
        return f"{100 * width:.0f} % of the prior"
    return f"{100 * (width - 1):.0f} % of the way from the prior to the safe ranges"
