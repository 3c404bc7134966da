"""The writer of distributions: a language model that knows reward, prior and safe ranges (Ma et al.
2024, DrEureka), and the reading of its replies: JSON of any care."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import ending_of, objects, spoken, why_no_answer
from eureka_agent.parameters import values_text
from eureka_agent.randomisation_records import (
    CurriculumStage,
    ParameterRanges,
    Prior,
    RandomisedParameters,
)
from eureka_agent.records import ParameterSpec, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings
from eureka_agent.task import is_finite
from eureka_agent.text import one_line, printable

LONGEST_REASON = 600
MOST_STAGES = 8
_LIST, _RANGES = "distributions", "parameters"
_LONGEST_REPLY = 100_000

Found = tuple[tuple[RandomisedParameters, ...], tuple[str, ...]]
"""Distributions of a reply, and the faults of those that cannot be used."""


@dataclass(frozen=True)
class DistributionRequest:
    """Distributions that are asked for."""

    attempt: str
    reward: RewardSpecification
    prior: Prior
    known: tuple[RandomisedParameters, ...]
    count: int


class DistributionWriter:
    """Writes distributions with a language model, from `prompts/randomise*.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
        sentence: str,
        settings: SearchSettings,
    ) -> None:
        self._model = model
        self._parameters = description.parameters
        self._system = system_message("randomise.md", description, sentence, settings)

    async def write(self, request: DistributionRequest) -> Found:
        """The distributions that could be read, at most as many as were asked for, and the faults
        of the others. Raises the errors of the gateway."""
        message = await self._model.ask(
            Role.RANDOMISER, *self.opening(request), attempt=request.attempt
        )
        found, faults = parse_distributions(
            message.reply, self._parameters, self._model.name, request.known, request.count
        )
        if not found and ending_of(message) is not FinishReason.STOP:
            faults = (why_no_answer(message)[0],)
        return found, faults

    def opening(self, request: DistributionRequest) -> tuple[ChatMessage, ...]:
        scores = {each.name: each for each in request.prior.parameters}
        pairs = [(each, scores[each.name]) for each in self._parameters]
        order = render("randomise_order.md", request=request, parameters=pairs)
        return self._system, ChatMessage("user", order)


# ── the reply ─────────────────────────────────────────────────────────────────────────────────────


class _UnusableError(Exception):
    """A distribution that cannot be used."""


def parse_distributions(
    text: str,
    parameters: Sequence[ParameterSpec],
    author: str,
    known: Sequence[RandomisedParameters],
    count: int,
) -> Found:
    """The first `count` distributions of a reply that differ from the `known`, named after them."""
    found: list[RandomisedParameters] = []
    faults: list[str] = []
    proposed = _proposed(spoken(printable(text[:_LONGEST_REPLY])).text)
    if not proposed:
        faults.append(f"the reply holds no JSON object with {_RANGES!r}")
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
                notes=notes,
            )
        )
    return tuple(found), tuple(faults)


def _proposed(text: str) -> list[dict[str, Any]]:
    """Objects of the first list of a reply, or one alone with parameters."""
    whole = None
    with suppress(ValueError, RecursionError):  # a reply without a block
        whole = json.loads(text[text.find("{") : text.rfind("}") + 1])
    for value in (whole, *objects(text)):
        if not isinstance(value, dict):
            continue
        listed = value.get(_LIST, [value] if _RANGES in value else [])
        if isinstance(listed, list) and (found := [one for one in listed if isinstance(one, dict)]):
            return found
    return []


def _curriculum(
    value: Mapping[str, Any], parameters: Mapping[str, ParameterSpec]
) -> tuple[tuple[CurriculumStage, ...], tuple[str, ...]]:
    """The curriculum of a proposal, and notes on what was changed. Raises _UnusableError."""
    notes: list[str] = []
    own = _ranges(value.get(_RANGES), parameters, notes)
    stages: dict[float, ParameterRanges] = {}
    proposed = value.get("curriculum")
    for stage in proposed if isinstance(proposed, list) else ():
        begins: Any = stage.get("from") if isinstance(stage, dict) else None
        if is_finite(begins) and 0 <= begins < 1:
            stages[begins] = _ranges(stage[_RANGES], parameters, notes) if _RANGES in stage else own
        else:
            notes.append(f"a stage without its begin is left out: {_shown(stage)}")
    ordered = {0.0: {} if stages else own, **dict(sorted(stages.items()))}
    if not any(ordered.values()):
        raise _UnusableError("; ".join([*notes, "it gives no parameter a range"]))
    if len(ordered) > MOST_STAGES:
        raise _UnusableError(f"it has {len(ordered)} stages, expected at most {MOST_STAGES}")
    curriculum = (CurriculumStage(begins=each, parameters=ordered[each]) for each in ordered)
    return tuple(curriculum), tuple(dict.fromkeys(notes))


def _ranges(
    proposed: Any, parameters: Mapping[str, ParameterSpec], notes: list[str]
) -> ParameterRanges:
    """Bounds within the safe ranges; what cannot be read is left out with a note."""
    found: ParameterRanges = {}
    for name, given in proposed.items() if isinstance(proposed, dict) else ():
        name = one_line(str(name), 100)
        values = given if isinstance(given, list | tuple) else [given]
        if name not in parameters:
            notes.append(f"the environment has no parameter {name!r}")
            continue
        if len(values) not in (1, 2) or not all(map(is_finite, values)):
            notes.append(f"{name!r} has no range: {_shown(given)}")
            continue
        safe, bounds = parameters[name], (float(min(values)), float(max(values)))
        low, high = (min(max(bound, safe.low), safe.high) for bound in bounds)
        if (low, high) != bounds:
            was, limits = values_text(*bounds), values_text(safe.low, safe.high)
            notes.append(f"{name}={was} was clipped to the safe range {limits}")
        if (low, high) != (safe.default, safe.default):
            found[name] = low, high
    # in the environment's order, so that equal distributions are equal
    return {name: found[name] for name in parameters if name in found}


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, default=str), 80)


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
