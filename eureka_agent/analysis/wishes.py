"""A person's wish as a language model reads it (Chen et al. 2026, ROSETTA: grounding before any
code), and figures by which it is followed from one generation to the next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from eureka_agent.analysis.trajectories import RECORDED, read_trajectories
from eureka_agent.archive.artefacts import TRAJECTORIES, attempt_folder
from eureka_agent.errors import RunFolderError
from eureka_agent.feedback_records import LONGEST_WORDS, Given, Measure, Reading, Wish
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import no_answer, objects, spoken
from eureka_agent.records import Attempt, TaskDescription
from eureka_agent.settings import SearchSettings
from eureka_agent.text import clipped, printable
from eureka_agent.value_ranges import short_number

_MOST_PARTS = 20
_LONGEST_PART = 400

Episode = Mapping[str, npt.NDArray[np.generic]]
"""Arrays of shape (steps, …) by variable."""


class Reads(Protocol):
    """A reader of wishes: a language model, or the offline designer's vocabulary."""

    async def read(
        self, wish: Wish, standing: Sequence[Given], about: Attempt | None, correction: str
    ) -> Reading:
        """The reading of a wish `about` an attempt, after a `correction` of an earlier one."""
        ...


class ModelReader:
    """Asks a model how it understands a wish, with `prompts/reading.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
        sentence: str,
        settings: SearchSettings,
    ) -> None:
        self._model = model
        self._description = description
        self._system = system_message("reading.md", description, sentence, settings)

    async def read(
        self, wish: Wish, standing: Sequence[Given], about: Attempt | None, correction: str
    ) -> Reading:
        """The reading. Raises LanguageModelError, also for a reply without one."""
        order = render(
            "reading_order.md",
            wish=wish,
            standing=standing,
            reward="" if about is None else about.proposal.reward.source,
            behaviour="" if about is None or about.diagnosis is None else about.diagnosis.whole,
            correction=correction,
        )
        message = await self._model.ask(Role.READER, self._system, ChatMessage("user", order))
        reading = parse_reading(message.reply, message.model, self._description)
        if reading is None:
            error = no_answer(message, "reading of the wish")
            error.hint = error.hint or "say it in other words, or go on without a reading"
            raise error
        return reading


def parse_reading(reply: str, author: str, description: TaskDescription) -> Reading | None:
    """The last object in the reply that has a reading; None without one."""
    for value in objects(spoken(printable(reply)).text):
        if isinstance(value, dict):
            found = {str(key).strip().lower(): content for key, content in value.items()}
            text = found.get("reading")
            if isinstance(text, str) and text.strip():
                parts = {
                    name: tuple(_texts(found.get(name)))[:_MOST_PARTS]
                    for name in ("stays", "goes", "changes", "unread")
                }
                measure = parse_measure(found.get("measure"), description)
                text = text.strip()[:LONGEST_WORDS]
                return Reading(text=text, author=author, measure=measure, **parts)
    return None


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str() if value.strip():
            yield clipped(value.strip(), _LONGEST_PART)
        case list() | tuple():
            for each in value:
                yield from _texts(each) if isinstance(each, str | dict) else ()
        case dict():
            parts = (f"{name}: {text}" for name, text in value.items() if isinstance(text, str))
            yield from (clipped(part, _LONGEST_PART) for part in parts)


# ── measures ──────────────────────────────────────────────────────────────────────────────────────


def parse_measure(value: Any, description: TaskDescription) -> Measure | None:
    """The measure that a model named; None for none, and for a variable that there is not."""
    try:
        measure = Measure.model_validate(value)
    except ValidationError:
        return None
    sizes = {each.name: math.prod(each.shape) for each in description.public_variables()}
    return measure if (measure.entry or 0) < sizes.get(measure.variable, 0) else None


def measured(measure: Measure, episodes: Sequence[Episode]) -> float | None:
    """Mean of the measure over episodes that have it; a vector counts by its length."""
    values = [_in_episode(measure, each.get(measure.variable)) for each in episodes]
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def _in_episode(measure: Measure, values: npt.NDArray[np.generic] | None) -> float | None:
    if values is None or not values.size or not np.issubdtype(values.dtype, np.number):
        return None
    rows = values.astype(np.float64).reshape(len(values), -1)
    if measure.entry is not None:
        rows = rows[:, measure.entry : measure.entry + 1]
    if measure.statistic == "mean change":
        rows = np.diff(rows, axis=0)
    if not rows.size:  # no such entry, or a change of a single step
        return None
    signed = measure.statistic == "mean" and rows.shape[1] == 1
    sizes = rows[:, 0] if signed else np.linalg.norm(rows, axis=1)
    found = float(sizes.max() if measure.statistic == "largest size" else sizes.mean())
    return found if np.isfinite(found) else None


def measured_attempts(measure: Measure, run: Path, attempts: Sequence[str]) -> dict[str, float]:
    """The measure in the stored episodes of attempts, nearest to the aim first."""
    found = {}
    for name in attempts:
        try:
            path = attempt_folder(run, name) / TRAJECTORIES
            episodes = read_trajectories(path, (measure.variable,))
        except RunFolderError:
            continue
        value = measured(measure, [episodes[each] for each in RECORDED if each in episodes])
        if value is not None:
            found[name] = value
    return dict(sorted(found.items(), key=lambda each: _distance(measure, each[1])))


def _distance(measure: Measure, value: float) -> float:
    """Distance of a value from what is wanted; only its order counts."""
    if isinstance(measure.aim, str):
        return value if measure.aim == "lower" else -value
    return abs(value - measure.aim)


def measure_words(measure: Measure, description: TaskDescription) -> str:
    """The measure in words: `mean size of tilt_angle [rad], wanted lower`."""
    known = {each.name: each for each in description.public_variables()}
    variable = known.get(measure.variable)
    unit = f" [{variable.unit}]" if variable is not None and variable.unit else ""
    entry = "" if measure.entry is None else f"[{measure.entry}]"
    aim = measure.aim if isinstance(measure.aim, str) else f"at {short_number(measure.aim)}"
    is_vector = variable is not None and math.prod(variable.shape) > 1
    whole = " (the vector's length)" if is_vector and measure.entry is None else ""
    return f"{measure.statistic} of {measure.variable}{entry}{whole}{unit}, wanted {aim}"


def measured_wishes(wishes: Sequence[Given]) -> list[tuple[int, Measure]]:
    """Wishes that can be measured, by the numbers of their records."""
    read = [(each.number, each.feedback) for each in wishes]
    readings = [(number, wish.reading) for number, wish in read if isinstance(wish, Wish)]
    return [(number, found.measure) for number, found in readings if found and found.measure]
