"""Curves of a run's trainings for its charts."""

from __future__ import annotations

import csv
import itertools
import math
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from eureka_agent.archive.artefacts import CURVES, attempt_folder, repeat_folder, training_folder
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.errors import RunFolderError
from eureka_agent.ranking import ranked
from eureka_agent.records import BASELINES, Attempt, Outcome
from eureka_agent.report.html.charts import MOST_LINES, Curve, PlottedTrainings, Role, shortened
from eureka_agent.report.run_report import RunReport

LARGEST = 1e100
"""Largest fitness of a curve; sums of larger ones are no numbers."""
MOST_FILES = 256
"""Files of which the curves stay in memory."""


def final_curves(report: RunReport) -> list[PlottedTrainings]:
    """Curves of the best finalists and of the baselines, from the fresh seeds."""
    names = [score.name for score in report.finalists[:MOST_LINES]]
    return [_of_final(report, name) for name in (*names, *BASELINES)]


def search_curves(report: RunReport) -> list[PlottedTrainings]:
    """Curves of the best attempts in the search, over all their trainings."""
    found = [_of_attempt(report, attempt) for attempt in ranked(report.attempts)[:MOST_LINES]]
    return [*found, *(_of_final(report, name) for name in BASELINES)]


def _of_final(report: RunReport, name: str) -> PlottedTrainings:
    folder = report.folder
    curves = [
        _curve(folder, training_folder, (name, each.seed), each.outcome)
        for each in report.final_trainings
        if each.name == name
    ]
    known = tuple(filter(None, curves))
    if not known and report.card is not None and name in BASELINES:
        points = report.card.rewards[name].curve
        known = (Curve(tuple(p.env_steps for p in points), tuple(p.mean for p in points)),)
    return PlottedTrainings(_label(report, name), _role(report, name), known)


def _of_attempt(report: RunReport, attempt: Attempt) -> PlottedTrainings:
    folder, name = report.folder, attempt.id
    curves = [_curve(folder, attempt_folder, (name,), attempt.outcome)]
    curves += [
        _curve(folder, repeat_folder, (name, repeat.seed), repeat.outcome)
        for repeat in attempt.repeats
        if repeat.outcome is not None
    ]
    return PlottedTrainings(_label(report, name), _role(report, name), tuple(filter(None, curves)))


def _role(report: RunReport, name: str) -> Role:
    match name:
        case "human" | "sparse":
            return name
    return "best" if report.best is not None and name == report.best.id else "attempt"


def _label(report: RunReport, name: str) -> str:
    if report.of_own_reward and name not in BASELINES:
        return "your reward"
    return f"{name} (best)" if _role(report, name) == "best" else name


def _curve(
    run: Path,
    folder_of: Callable[..., Path],
    training: tuple[str | int, ...],
    outcome: Outcome | None,
) -> Curve | None:
    """Curve in a training's folder, else its checkpoints: a baseline from the cache has only
    those. None without either."""
    try:
        path = folder_of(run, *training) / CURVES
        status = path.stat(follow_symlinks=False)
        return _of_file(path, status.st_ino, status.st_mtime_ns)
    except (OSError, RunFolderError):
        return _checkpoints(outcome)


@lru_cache(MOST_FILES)
def _of_file(path: Path, inode: int, time: int) -> Curve:
    """Curve of a file, which a page draws again and again while a run grows."""
    return shortened(read_fitness(path))


def read_fitness(path: Path) -> Curve:
    """Env steps and fitness of a `curves.csv`. Raises RunFolderError for another file."""
    try:
        with os.fdopen(open_plain(path), newline="", encoding="utf-8") as stream:
            rows = csv.reader(stream)
            header = next(rows, [])
            steps, fitness = header.index("env_steps"), header.index("fitness")
            points = [(int(row[steps]), _number(row[fitness])) for row in rows]
    except (OSError, IndexError, ValueError, csv.Error) as error:
        raise RunFolderError(
            f"{str(path)!r} cannot be read as curves: {error}", "was it edited or cut off?"
        ) from None
    places = [place for place, _ in points]
    if not points or any(before >= after for before, after in itertools.pairwise(places)):
        raise RunFolderError(f"{str(path)!r} holds no curve", "was it edited or cut off?")
    return Curve(tuple(places), tuple(value for _, value in points))


def _number(cell: str) -> float | None:
    value = float(cell) if cell else math.nan
    return value if abs(value) <= LARGEST else None


def _checkpoints(outcome: Outcome | None) -> Curve | None:
    points = () if outcome is None else outcome.checkpoints
    if not points:
        return None
    known = [each.fitness for each in points]
    values = (None if value is None or abs(value) > LARGEST else value for value in known)
    return Curve(tuple(each.env_steps for each in points), tuple(values))
