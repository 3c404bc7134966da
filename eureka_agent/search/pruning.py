"""Pruning of runs: files that nothing needs again.

Files are taken from finished runs alone. The best attempt, finalists, baselines and distributions
keep theirs; a run in which somebody compared attempts keeps all. Each removal is in the journal
before the first file goes.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.archive import artefacts
from eureka_agent.archive.files import files_below, is_held, locked, size_of, storage_errors
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.archive.safe_files import inside
from eureka_agent.archive.snapshots import FOLDER as SNAPSHOTS
from eureka_agent.journal.entries import Pruned
from eureka_agent.records import RunStatus
from eureka_agent.search.filming import VIDEOS
from eureka_agent.search.recorder import WORKERS_FOLDER
from eureka_agent.search.summary import best_attempt

_DRAFT = re.compile(r"\..+\.draft-\d+-\d+")
_CLIP = re.compile(r"clip-\d+\.(mp4|npz)")
_KINDS = {
    artefacts.POLICY: "policies",
    artefacts.PRACTICE: "episodes",
    artefacts.TRAJECTORIES: "episodes",
    **dict.fromkeys(
        (artefacts.VIDEO, artefacts.GIF, artefacts.SHEET, artefacts.JUDGED), "videos and pictures"
    ),
}


@dataclass(frozen=True)
class Removable:
    """A file that nothing needs again."""

    path: Path
    kind: str
    size: int
    attempt: str = ""
    """Attempt that can no longer be shown without it."""


@dataclass(frozen=True)
class PrunePlan:
    """Result of looking through a run."""

    folder: Path
    size: int
    """Bytes of the whole run."""
    files: tuple[Removable, ...] = ()
    untouched: str = ""
    """Reason to leave the run as it is."""

    @property
    def freed(self) -> int:
        """Bytes that are freed."""
        return sum(file.size for file in self.files)

    def by_kind(self) -> dict[str, int]:
        """Bytes of the files by their kind."""
        sizes: Counter[str] = Counter()
        for file in self.files:
            sizes[file.kind] += file.size
        return dict(sizes)


def prune_plan(folder: Path, *, is_ours: bool = False) -> PrunePlan:
    """The files of a run that may go. `is_ours`: this process holds its lock. Raises
    RunFolderError."""
    untouched = "a process works on it" if not is_ours and is_held(folder) else ""
    run = open_run(folder, reading=True)
    with closing(run.archive):
        files = list(files_below(folder))
        size = sum(map(size_of, files))
        if folder.is_symlink():
            untouched = untouched or "it is a link"
        elif not run.is_own():
            untouched = untouched or "it is not your own; remove its folder by hand"
        if untouched:
            return PrunePlan(folder, size, untouched=untouched)
        return PrunePlan(folder, size, tuple(_removable(run, files)))


def _removable(run: Run, files: Iterable[os.DirEntry[str]]) -> Iterable[Removable]:
    is_finished = run.status is RunStatus.FINISHED
    kept = _kept(run)
    for file in sorted(files, key=lambda each: each.path):
        parts = Path(file.path).relative_to(run.folder).parts
        kind, attempt = "", ""
        if parts[0] == WORKERS_FOLDER or _DRAFT.fullmatch(file.name):
            kind = "leftovers"
        elif is_finished and parts[0] == SNAPSHOTS:
            kind = "saved states"
        elif is_finished and (parts[0] == VIDEOS or _CLIP.fullmatch(file.name)):
            kind = "videos and pictures"
        elif is_finished and parts[0] == artefacts.ATTEMPTS and parts[1] not in kept:
            is_curve = file.name.startswith("events.out.tfevents.")
            kind = "TensorBoard files" if is_curve else _KINDS.get(file.name, "")
            attempt = parts[1] if kind else ""
        if kind:
            yield Removable(inside(run.folder, *parts), kind, size_of(file), attempt)


def _kept(run: Run) -> set[str]:
    """Attempts that keep all their files."""
    attempts = run.archive.attempts_in_brief()
    if run.archive.facts.feedback:
        return {each.id for each in attempts}
    best = best_attempt(run)
    kept = {each.name for each in run.archive.trainings()}
    kept |= {each.id for each in attempts if not each.is_ranked}
    return kept if best is None else {best.id, *kept}


def prune(plan: PrunePlan) -> PrunePlan:
    """Remove what a plan names, if it still may go; the removed. Raises RunFolderError."""
    with locked(plan.folder):
        now = prune_plan(plan.folder, is_ours=True)  # it may have gone on meanwhile
        named = {file.path for file in plan.files}
        files = tuple(file for file in now.files if file.path in named)
        if files:
            _remove_files(plan.folder, files)
        return PrunePlan(plan.folder, now.size, files, now.untouched)


def _remove_files(folder: Path, files: tuple[Removable, ...]) -> None:
    run = open_run(folder)
    with closing(run.archive):
        names = dict.fromkeys(file.attempt for file in files if file.attempt)
        size = sum(file.size for file in files)
        run.archive.append(Pruned(attempts=tuple(names), files=len(files), size=size))
    with storage_errors(folder):
        for file in files:
            file.path.unlink(missing_ok=True)
    for parent in sorted({file.path.parent for file in files}, reverse=True):
        if not parent.is_relative_to(folder / artefacts.ATTEMPTS):
            with suppress(OSError):  # it holds more
                parent.rmdir()
