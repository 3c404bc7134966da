"""Distributions of parameters from a language model's reply: JSON of any care."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eureka_agent.llm.markdown import objects
from eureka_agent.llm.spoken import spoken
from eureka_agent.parameters import values_text
from eureka_agent.randomisation_records import CurriculumStage, RandomisedParameters
from eureka_agent.records import ParameterRanges, ParameterSpec
from eureka_agent.task import is_finite
from eureka_agent.text import one_line, printable

LONGEST_REASON = 600
MOST_STAGES = 8
_LIST, _RANGES = "distributions", "parameters"
_LONGEST_REPLY = 100_000
_MOST_STARTS = 200
"""Opening braces that are tried as the start of an object."""
_BEGINS = ("from", "begins", "begin", "start", "share", "at")
"""Keys under which models write the share at which a stage begins."""


@dataclass(frozen=True)
class DistributionReply:
    """Distributions of a reply, and the faults of those that cannot be used."""

    distributions: tuple[RandomisedParameters, ...]
    faults: tuple[str, ...]


class _UnusableError(Exception):
    """A distribution that cannot be used."""


def parse_distributions(
    text: str,
    parameters: Sequence[ParameterSpec],
    author: str,
    known: Sequence[RandomisedParameters],
    count: int,
) -> DistributionReply:
    """The first `count` distributions of a reply that differ from the `known`, named after them."""
    found: list[RandomisedParameters] = []
    faults: list[str] = []
    proposed = list(_proposed(spoken(printable(text[:_LONGEST_REPLY])).text))
    for place, value in enumerate(proposed, 1):
        if len(found) == count:
            break
        try:
            curriculum, notes = _curriculum(value, {each.name: each for each in parameters})
        except _UnusableError as fault:
            faults.append(f"distribution {place}: {fault}")
            continue
        twin = next((each for each in (*known, *found) if each.curriculum == curriculum), None)
        if twin is not None:
            faults.append(f"distribution {place} is the same as {twin.name}")
            continue
        found.append(
            RandomisedParameters(
                name=f"d{len(known) + len(found) + 1}",
                reason=one_line(str(value.get("reason") or ""), LONGEST_REASON),
                author=author,
                curriculum=curriculum,
                notes=tuple(notes),
            )
        )
    if not proposed:
        faults.append(f"the reply holds no JSON object with {_RANGES!r}")
    return DistributionReply(tuple(found), tuple(faults))


def _proposed(text: str) -> Iterator[Mapping[str, Any]]:
    """Objects with parameters, in the reply's order: alone, in a list, or in an object."""
    found = [*_with_parameters(_values(text))]
    if not found:  # Python's notation, which only whole blocks are read in
        found = next(
            (each for value in objects(text) if (each := [*_with_parameters([value])])), []
        )
    yield from found


def _with_parameters(values: Sequence[Any] | Iterator[Any]) -> Iterator[Mapping[str, Any]]:
    for value in values:
        if not isinstance(value, dict):
            continue
        if isinstance(value.get(_LIST), list):
            yield from (each for each in value[_LIST] if isinstance(each, dict))
        elif _RANGES in value:
            yield value


def _values(text: str) -> Iterator[Any]:
    """JSON objects that are in no other one."""
    decoder, place = json.JSONDecoder(), 0
    for _ in range(_MOST_STARTS):
        place = text.find("{", place)
        if place < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
        else:
            yield value


def _curriculum(
    value: Mapping[str, Any], parameters: Mapping[str, ParameterSpec]
) -> tuple[tuple[CurriculumStage, ...], list[str]]:
    """The curriculum of a proposal, and notes on what was changed. Raises _UnusableError."""
    notes: list[str] = []
    own = _ranges(value.get(_RANGES), parameters, notes)
    stages: dict[float, ParameterRanges] = {}
    proposed = value.get("curriculum")
    if _share(proposed) is not None:  # the share from which the parameters hold
        proposed = {"from": proposed}
    for stage in proposed if isinstance(proposed, list) else [proposed] if proposed else []:
        begins = _begin_of(stage)
        if begins is None and isinstance(stage, str):  # `none`
            continue
        if begins is None:
            notes.append(f"a stage without its begin is left out: {_shown(stage)}")
            continue
        stages[begins] = _ranges(stage[_RANGES], parameters, notes) if _RANGES in stage else own
    ordered = {0.0: {} if stages else own, **dict(sorted(stages.items()))}
    if not any(ordered.values()):
        raise _UnusableError("; ".join([*notes, "it gives no parameter a range"]))
    if len(ordered) > MOST_STAGES:
        raise _UnusableError(f"it has {len(ordered)} stages, expected at most {MOST_STAGES}")
    return tuple(
        CurriculumStage(begins=begins, parameters=ranges) for begins, ranges in ordered.items()
    ), list(dict.fromkeys(notes))


def _begin_of(stage: Any) -> float | None:
    if not isinstance(stage, dict):
        return None
    known = (_share(stage[name]) for name in _BEGINS if name in stage)
    return next((share for share in known if share is not None), None)


def _share(value: Any) -> float | None:
    """A share in [0, 1), also as a percentage; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%")) / (100 if "%" in value else 1)
        except ValueError:
            return None
    if not _is_number(value) or value < 0:
        return None
    share = float(value) / 100 if value > 1 else float(value)
    return share if share < 1 else None


def _ranges(
    proposed: Any, parameters: Mapping[str, ParameterSpec], notes: list[str]
) -> ParameterRanges:
    """Bounds within the safe ranges; what cannot be read is left out with a note."""
    found: ParameterRanges = {}
    for name, given in proposed.items() if isinstance(proposed, dict) else ():
        name = one_line(str(name), 100)
        bounds = _bounds(given)
        if name not in parameters:
            notes.append(f"the environment has no parameter {name!r}")
            continue
        if bounds is None:
            notes.append(f"{name!r} has no range: {_shown(given)}")
            continue
        safe = parameters[name]
        low, high = (min(max(bound, safe.low), safe.high) for bound in sorted(bounds))
        if (low, high) != tuple(sorted(bounds)):
            was, limits = values_text(*sorted(bounds)), values_text(safe.low, safe.high)
            notes.append(f"{name}={was} was clipped to the safe range {limits}")
        if (low, high) != (safe.default, safe.default):
            found[name] = low, high
    # in the environment's order, so that equal distributions are equal
    return {name: found[name] for name in parameters if name in found}


def _bounds(value: Any) -> tuple[float, float] | None:
    """Two finite numbers from a list, an object with `low` and `high`, or a fixed value."""
    if isinstance(value, dict):
        value = [value.get("low", value.get("min")), value.get("high", value.get("max"))]
    values = list(value) if isinstance(value, list | tuple) else [value, value]
    if len(values) == 1:
        values *= 2
    if len(values) != 2 or not all(map(_is_number, values)):
        return None
    return float(values[0]), float(values[1])


def _is_number(value: Any) -> bool:
    try:
        return is_finite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, default=str), 80)
