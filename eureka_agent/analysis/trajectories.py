"""The worst and the best evaluated episode: read from their file, and described."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.episode_table import (
    LEGEND,
    Episode,
    length_of,
    trajectory_tables,
)
from eureka_agent.analysis.losses import losses_text
from eureka_agent.analysis.reflection import number
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.array_files import check_arrays, failed, read_episodes, succeeded
from eureka_agent.errors import RunFolderError
from eureka_agent.records import EpisodeSummary, Evaluation, TaskDescription

RECORDED = ("worst", "best")
"""Names of the episodes kept of an evaluation."""


def read_trajectories(
    path: Path, variables: Collection[str] | None = None
) -> dict[str, dict[str, npt.NDArray[np.generic]]]:
    """Read episodes by name ("worst", "best"): arrays of shape (steps, …). Nothing is unpickled.
    Raises RunFolderError for a file that is not an npz of `<episode>/<variable>`."""
    try:
        check_arrays(path)
        with os.fdopen(open_plain(path), "rb") as file:
            return read_episodes(file, variables)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise RunFolderError(
            f"cannot read the trajectories {str(path)!r}: {error}",
            "train or evaluate the attempt again",
        ) from None


def episodes_text(
    episodes: Mapping[str, Episode], evaluation: Evaluation | None, description: TaskDescription
) -> str:
    """Losses of fitness of both episodes, then end and table of each, worst first."""
    shown = {name: episodes[name] for name in RECORDED if name in episodes}
    traces = {
        name: episode["fitness"].astype(np.float64)
        for name, episode in shown.items()
        if "fitness" in episode
        and episode["fitness"].ndim == 1
        and episode["fitness"].dtype.kind == "f"
    }
    tables, left_out = trajectory_tables(shown, description)
    if tables.get("worst") == tables.get("best"):
        tables["best"] = "as the worst one"
    failures = [name for name, episode in shown.items() if failed(episode)]
    parts = [
        losses_text(traces, description, failures),
        LEGEND if shown else "",
        *(
            f"{name.capitalize()}"
            f" episode{_ending(name, shown[name], evaluation, description)}:\n{tables[name]}"
            for name in shown
        ),
        f"In both episodes {left_out}" if left_out else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _ending(
    name: str, episode: Episode, evaluation: Evaluation | None, description: TaskDescription
) -> str:
    if evaluation is None or not evaluation.episodes:
        if "terminated" not in episode:
            return ""
        end = "a failure" if failed(episode) else "a success" if succeeded(episode) else "its time"
        return f" (ended by {end} after {length_of(episode)} steps)"
    pick = min if name == "worst" else max
    summary: EpisodeSummary = pick(evaluation.episodes, key=lambda episode: episode.fitness)
    good = ", a success," if summary.ended_by in description.success_causes else ""
    return (
        f" (fitness {number(summary.fitness)}, ended by {summary.ended_by}{good} after"
        f" {summary.length} steps)"
    )
