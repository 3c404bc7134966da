"""Curves as a CSV file with one row per curve point."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
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
