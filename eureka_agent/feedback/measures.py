"""Figures by which a wish is followed from one generation to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from eureka_agent.analysis.trajectories import RECORDED, read_trajectories
from eureka_agent.archive.artefacts import TRAJECTORIES, attempt_folder
from eureka_agent.errors import RunFolderError
from eureka_agent.feedback_records import Given, Measure, Wish
from eureka_agent.records import TaskDescription
from eureka_agent.value_ranges import short_number

Episode = Mapping[str, npt.NDArray[np.generic]]
"""Arrays of shape (steps, …) by variable."""


def parse_measure(value: Any, description: TaskDescription) -> Measure | None:
    """The measure that a model named; None for none, and for a variable that there is not."""
    if not isinstance(value, dict):
        return None
    try:
        measure = Measure.model_validate(value)
    except ValidationError:
        return None
    sizes = {each.name: math.prod(each.shape) for each in description.public_variables()}
    size = sizes.get(measure.variable)
    if size is None or (measure.entry is not None and measure.entry >= size):
        return None
    return measure


def measured(measure: Measure, episodes: Sequence[Episode]) -> float | None:
    """Mean of the measure over episodes; None where none has the variable. A vector without an
    entry counts by its Euclidean length."""
    found = [
        value
        for episode in episodes
        if measure.variable in episode
        and (value := _of_episode(measure, episode[measure.variable])) is not None
    ]
    return sum(found) / len(found) if found else None


def _of_episode(measure: Measure, values: npt.NDArray[np.generic]) -> float | None:
    if not values.size or not np.issubdtype(values.dtype, np.number):
        return None
    rows = values.astype(np.float64).reshape(len(values), -1)
    if measure.entry is not None:
        if measure.entry >= rows.shape[1]:
            return None
        rows = rows[:, measure.entry : measure.entry + 1]
    if measure.statistic == "mean change":
        rows = np.diff(rows, axis=0)
    signed = measure.statistic == "mean" and rows.shape[1] == 1
    sizes = rows[:, 0] if signed else np.linalg.norm(rows, axis=1)
    if not sizes.size:
        return None
    found = float(sizes.max() if measure.statistic == "largest size" else sizes.mean())
    return found if np.isfinite(found) else None


def measured_attempts(measure: Measure, run: Path, attempts: Sequence[str]) -> dict[str, float]:
    """The measure in the best and the worst stored episode of attempts, nearest to the aim first;
    without those that have none."""
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
    match measure.aim:
        case "lower":
            return value
        case "higher":
            return -value
        case target:
            return abs(value - target)


def measure_words(measure: Measure, description: TaskDescription) -> str:
    """The measure in words: `mean size of tilt_angle [rad], wanted lower`."""
    known = {each.name: each for each in description.public_variables()}
    variable = known.get(measure.variable)
    unit = "" if variable is None else variable.unit
    entry = "" if measure.entry is None else f"[{measure.entry}]"
    aim = measure.aim if isinstance(measure.aim, str) else f"at {short_number(measure.aim)}"
    is_vector = variable is not None and math.prod(variable.shape) > 1
    whole = " (the vector's length)" if is_vector and measure.entry is None else ""
    what = f"{measure.statistic} of {measure.variable}{entry}{whole}"
    return f"{what}{f' [{unit}]' if unit else ''}, wanted {aim}"


def measured_wishes(wishes: Sequence[Given]) -> list[tuple[int, Measure]]:
    """Wishes that can be measured, by the numbers of their records."""
    return [
        (given.number, given.feedback.reading.measure)
        for given in wishes
        if isinstance(given.feedback, Wish)
        and given.feedback.reading is not None
        and given.feedback.reading.measure is not None
    ]
