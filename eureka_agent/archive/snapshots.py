"""Saved states of trainings in the run folder, from which an interrupted search resumes."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from safetensors import SafetensorError

from eureka_agent.archive.files import storage_errors
from eureka_agent.archive.safe_files import inside, open_plain
from eureka_agent.array_files import open_tensors
from eureka_agent.errors import RunFolderError
from eureka_agent.records import CurvePoint

FOLDER = ".snapshots"
_POINTS: TypeAdapter[CurvePoint] = TypeAdapter(CurvePoint)
_UNREADABLE = (
    *(OSError, RunFolderError, SafetensorError),
    *(KeyError, TypeError, ValueError),  # pydantic's and json's are ValueErrors
    *(RecursionError, OverflowError),  # a worker wrote it: endless nesting, infinite numbers
)


@dataclass(frozen=True)
class SavedTraining:
    """A training's last saved state with its curve."""

    state: Path
    points: tuple[CurvePoint, ...]
    rungs: Mapping[int, Path]
    """Policies at rungs (safetensors) that have no score yet, by env steps."""


class SnapshotStore:
    """Last state of each training by the name of its job."""

    def __init__(self, run: Path) -> None:
        """Raises RunFolderError where their folder is a link."""
        self._folder = inside(run, FOLDER)
        self._stored: dict[str, int] = {}
        """Points that this process wrote, by job."""

    def state_path(self, job: str) -> Path:
        """Path of a job's state, which is renamed there after its points are stored."""
        return self._folder / f"{job}.safetensors"

    def _points_path(self, job: str) -> Path:
        return self._folder / f"{job}.jsonl"

    def rung_path(self, job: str, env_steps: int) -> Path:
        """Path of a job's policy at a rung, which is stored before any later state."""
        return self._folder / f"{job}.{env_steps}.safetensors"

    def _rungs(self, job: str) -> dict[int, Path]:
        steps = {
            path: path.name.split(".")[-2]
            for path in self._folder.glob(f"{job}.*.safetensors")
            if path.is_file() and not path.is_symlink()
        }
        return {int(each): path for path, each in steps.items() if each.isdecimal()}

    def put_points(self, job: str, points: Sequence[CurvePoint]) -> None:
        """Store a job's curve so far, appending new points. Raises RunFolderError."""
        known = self._stored.get(job, 0)
        if known > len(points):  # it resumed from an earlier state
            known = 0
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if known else os.O_TRUNC)
        with storage_errors(self._folder.parent):
            self._folder.mkdir(exist_ok=True)
            descriptor = open_plain(self._points_path(job), flags)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(point.model_dump_json() + "\n" for point in points[known:])
        self._stored[job] = len(points)

    def find(self, job: str) -> SavedTraining | None:
        """Last state of a job; None where there is none, or it cannot be read."""
        state = self.state_path(job)
        try:
            inside(self._folder, state.name)  # refuses links and pipes
            with open_tensors(state, "numpy") as file:
                iterations = int(json.loads((file.metadata() or {})["training"])["iterations"])
            with os.fdopen(open_plain(self._points_path(job)), encoding="utf-8") as lines:
                first = itertools.islice(lines, iterations)
                points = tuple(_POINTS.validate_json(line) for line in first)
        except _UNREADABLE:
            return None
        if len(points) != iterations:
            return None
        return SavedTraining(state, points, self._rungs(job))

    def drop(self, job: str) -> None:
        """Forget a job that has ended."""
        self._stored.pop(job, None)
        for path in (self.state_path(job), self._points_path(job), *self._rungs(job).values()):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget all jobs."""
        shutil.rmtree(self._folder, ignore_errors=True)
