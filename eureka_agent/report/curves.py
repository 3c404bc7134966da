"""Curves as a CSV file with one row per curve point."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.archive.safe_files import open_plain
from eureka_agent.errors import RunFolderError
from eureka_agent.records import CurvePoint

MAPPINGS = ("components", "component_magnitudes", "component_deviations", "terminations")
"""Fields of `CurvePoint` with a column `<field>/<name>` for each name."""
SCALARS = tuple(name for name in CurvePoint.model_fields if name not in MAPPINGS)


def write_curves_csv(path: Path, points: Sequence[CurvePoint]) -> None:
    """Write a row per point, floats in full precision, an empty cell for an unknown value."""
    names = {
        name: list(dict.fromkeys(key for point in points for key in getattr(point, name)))
        for name in MAPPINGS
    }
    header = [*SCALARS, *(f"{name}/{key}" for name in MAPPINGS for key in names[name])]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for point in points:
            row = [getattr(point, name) for name in SCALARS]
            row += [getattr(point, name).get(key) for name in MAPPINGS for key in names[name]]
            writer.writerow("" if value is None else value for value in row)


def read_curves_csv(path: Path) -> tuple[CurvePoint, ...]:
    """Points of a file of `write_curves_csv`. Raises RunFolderError for another file."""
    try:
        with os.fdopen(open_plain(path), newline="", encoding="utf-8") as stream:
            return tuple(_point(row) for row in csv.DictReader(stream))
    except (OSError, KeyError, TypeError, AttributeError, ValueError, csv.Error) as error:
        # pydantic's and unicode's errors are ValueErrors; a row of another length gives TypeError
        # or AttributeError
        raise RunFolderError(
            f"{str(path)!r} cannot be read as curves: {type(error).__name__}:"
            f" {' '.join(str(error).split())[:300]}",
            "was it edited or cut off? restore it",
        ) from None


def _point(row: dict[str, str]) -> CurvePoint:
    values: dict[str, Any] = {name: row[name] or None for name in SCALARS}
    for name in MAPPINGS:
        values[name] = {
            key.partition("/")[2]: cell
            for key, cell in row.items()
            if key.startswith(f"{name}/") and cell
        }
    return CurvePoint.model_validate(values)


FILE_PREFIX = "events.out.tfevents"
TRAINING_FIELDS = (
    "action_saturation",
    "action_std",
    "learning_rate",
    "kl",
    "entropy",
    "value_loss",
    "policy_loss",
    "explained_variance",
)
"""Fields of `CurvePoint` with the tag `training/<field>`."""


def write_event_file(path: Path, points: Sequence[CurvePoint]) -> None:
    """Write an event file, whose name must begin with `FILE_PREFIX`; a scalar's step is its env
    steps. Tags: `fitness`, `episode_length`, `reward`, `component/<name>`, `ended_by/<cause>`,
    `training/<field>`. Unknown values are left out."""
    # slow to import: 0.2 s
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    wall_time = time.time()
    with path.open("wb") as stream:
        writer = RecordWriter(stream)
        writer.write(Event(wall_time=wall_time, file_version="brain.Event:2").SerializeToString())
        for point in points:
            values = [
                Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(point).items()
            ]
            event = Event(wall_time=wall_time, step=point.env_steps, summary=Summary(value=values))
            writer.write(event.SerializeToString())


def scalars(point: CurvePoint) -> Mapping[str, float]:
    """Values of a curve point by TensorBoard tag."""
    values: dict[str, float | None] = {
        "fitness": point.fitness,
        "episode_length": point.episode_length,
        "reward": point.reward,
        **{f"component/{name}": value for name, value in point.components.items()},
        **{f"ended_by/{cause}": float(count) for cause, count in point.terminations.items()},
        **{f"training/{name}": getattr(point, name) for name in TRAINING_FIELDS},
    }
    return {tag: value for tag, value in values.items() if value is not None}
