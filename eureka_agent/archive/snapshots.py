"""States of trainings under way, in the run folder: what a killed search goes on from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError

from eureka_agent.archive.database import storage_errors
from eureka_agent.archive.safe_files import inside, open_plain
from eureka_agent.array_files import open_tensors
from eureka_agent.errors import RunFolderError
from eureka_agent.records import CurvePoint

FOLDER = ".snapshots"
_POINTS: TypeAdapter[CurvePoint] = TypeAdapter(CurvePoint)


@dataclass(frozen=True)
class SavedTraining:
    """A training's last saved state and the curve that belongs to it."""

    state: Path
    """Safetensors file as a worker wrote it."""
    points: tuple[CurvePoint, ...]
    policy: Path | None = None
    """Safetensors file, where the training waited at a pause when it was saved there: whether it
    goes on was not decided."""


class SnapshotStore:
    """The last state of each training by the name of its job."""

    def __init__(self, run: Path) -> None:
        """Raises RunFolderError where their folder is a link."""
        self._folder = inside(run, FOLDER)
        self._stored: dict[str, int] = {}
        """Points on disk that this process wrote, by job."""

    def state_path(self, job: str) -> Path:
        """Where the next state of a job is to be put, in one step, once its points are there."""
        return self._folder / f"{job}.safetensors"

    def _points_path(self, job: str) -> Path:
        return self._folder / f"{job}.jsonl"

    def policy_path(self, job: str) -> Path:
        """Place for the policy of a job that waits at a pause; it is put there before the state."""
        return self._folder / f"{job}.policy.safetensors"

    def put_points(self, job: str, points: Sequence[CurvePoint]) -> None:
        """Store a job's whole curve so far; what is there already is not written again. Raises
        RunFolderError for a full disk and the like."""
        known = self._stored.get(job, 0)
        if known > len(points):  # it went on from an earlier state
            known = 0
        with storage_errors(self._folder.parent):
            self._folder.mkdir(exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if known else os.O_TRUNC)
            with os.fdopen(
                open_plain(self._points_path(job), flags), "w", encoding="utf-8"
            ) as file:
                file.writelines(point.model_dump_json() + "\n" for point in points[known:])
        self._stored[job] = len(points)

    def find(self, job: str) -> SavedTraining | None:
        """The last state of a job; None where there is none, or what is there cannot be read."""
        state = self.state_path(job)
        try:
            inside(self._folder, state.name)  # no link, and no pipe that would be waited for
            with open_tensors(state, "numpy") as file:
                iterations = int(json.loads((file.metadata() or {})["training"])["iterations"])
            with os.fdopen(open_plain(self._points_path(job)), encoding="utf-8") as lines:
                points = tuple(
                    _POINTS.validate_json(line)
                    for _, line in zip(range(iterations), lines, strict=False)
                )
        except (
            OSError,
            RunFolderError,
            SafetensorError,
            ValidationError,
            KeyError,
            TypeError,
            ValueError,
        ):
            return None
        except (
            RecursionError,
            OverflowError,
        ):  # a worker wrote it: depth without end, an infinite number
            return None
        if len(points) != iterations:
            return None
        policy = self.policy_path(job)
        return SavedTraining(
            state, points, policy if policy.is_file() and not policy.is_symlink() else None
        )

    def drop(self, job: str) -> None:
        """Forget a job that has ended."""
        self._stored.pop(job, None)
        for path in (self.state_path(job), self._points_path(job), self.policy_path(job)):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget all: the run has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)
