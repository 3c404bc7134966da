"""The worst and the best evaluated episode as a compact table: each variable at a few points in time, and how the episode ended."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.reflection import number
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.array_files import check_arrays
from eureka_agent.errors import RunFolderError
from eureka_agent.records import EpisodeSummary, Evaluation, TaskDescription

Episode = Mapping[str, npt.NDArray[np.generic]]
POINTS = 8
"""Points in time that a table shows."""
BEFORE_THE_END = (20, 10, 5, 2)
"""Steps before the last one that a table of an episode which failed shows in place of some of those: what ended it happened there."""
_ENTRIES = 4
"""Entries of a vector that are shown; a longer one is shown by its norm."""


def read_trajectories(
    path: Path, variables: Collection[str] | None = None
) -> dict[str, dict[str, npt.NDArray[np.generic]]]:
    """Episodes by name ("worst", "best"), each variable, or those that are named, of shape (steps, …). Nothing is unpickled.

    Raises RunFolderError for a file that is not an npz of plain arrays named `<episode>/<variable>`.
    """
    episodes: dict[str, dict[str, npt.NDArray[np.generic]]] = {}
    try:
        check_arrays(path)
        with os.fdopen(open_plain(path), "rb") as file, np.load(file, allow_pickle=False) as arrays:
            for key in arrays.files:
                episode, _, variable = key.partition("/")
                if variables is None or variable in variables:
                    episodes.setdefault(episode, {})[variable] = arrays[key]
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise RunFolderError(
            f"cannot read the trajectories {str(path)!r}: {error}", "train or evaluate the attempt again"
        ) from None
    return episodes


def trajectory_table(episode: Episode, description: TaskDescription) -> str:
    """Every public variable at eight or nine points in time, one a line, with the unit. `episode`: arrays of shape (steps, …)."""
    shown = [variable for variable in description.public_variables() if variable.name in episode]
    steps = max((len(episode[variable.name]) for variable in shown), default=0)
    if steps == 0:
        return "no steps"
    places = _places(episode, steps)
    rows = [("time [s]", [number(float((place + 1) * description.control_dt)) for place in places])]
    for variable in shown:
        values = episode[variable.name].reshape(steps, -1).astype(np.float64)
        label = (
            f"{variable.name} [{variable.unit}]"
            if values.shape[1] <= _ENTRIES
            else f"|{variable.name}| [{variable.unit}]"
        )
        rows.append((label, [_entry(values[place]) for place in places]))
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {'  '.join(cells)}" for label, cells in rows)


def _places(episode: Episode, steps: int) -> npt.NDArray[np.int64]:
    """The steps that are shown: evenly spread; of an episode that failed fewer of those, and more of its last ones."""
    failed = "terminated" in episode and bool(episode["terminated"][-1])
    places = np.linspace(0, steps - 1, POINTS - 3 if failed else POINTS).round().astype(np.int64)
    last = [steps - 1 - before for before in BEFORE_THE_END if before < steps] if failed else []
    return np.unique([*places, *last])


def _entry(values: npt.NDArray[np.float64]) -> str:
    if len(values) > _ENTRIES:
        return number(float(np.linalg.norm(values)))
    return number(float(values[0])) if len(values) == 1 else f"({', '.join(number(float(value)) for value in values)})"


def episodes_text(episodes: Mapping[str, Episode], evaluation: Evaluation | None, description: TaskDescription) -> str:
    """Both episodes with how they ended, worst first."""
    parts = []
    for name in ("worst", "best"):
        if name in episodes:
            parts.append(
                f"{name.capitalize()} episode{_ending(name, evaluation)}:\n{trajectory_table(episodes[name], description)}"
            )
    return "\n\n".join(parts)


def _ending(name: str, evaluation: Evaluation | None) -> str:
    if evaluation is None or not evaluation.episodes:
        return ""
    pick = min if name == "worst" else max
    summary: EpisodeSummary = pick(evaluation.episodes, key=lambda episode: episode.fitness)
    return f" (fitness {number(summary.fitness)}, ended by {summary.ended_by} after {summary.length} steps)"
