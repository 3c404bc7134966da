"""Trainings in real workers, timed: what benchmarks of the training pool share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from _common import Subject

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population, Problem, TrainingResult
from eureka_agent.records import CurvePoint
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.process_wall import ProcessHandle, ProcessWall
from eureka_agent.sandbox.wall import Limits, Wall, WorkerHandle
from eureka_agent.settings import SearchSettings, TrainingSettings

SNAPSHOT_SECONDS = SearchSettings().snapshot_interval


class WatchedWall(ProcessWall):
    """A process wall that remembers the workers it started."""

    def __init__(self) -> None:
        super().__init__()
        self.pids: list[int] = []

    async def start(self, scratch: Path, limits: Limits) -> WorkerHandle:
        """See `Wall.start`."""
        handle = await super().start(scratch, limits)
        assert isinstance(handle, ProcessHandle)
        self.pids.append(handle.process.pid)
        return handle


@dataclass
class PoolRun:
    """Trainings of one pool, from its making to their last result."""

    wall: WatchedWall = field(default_factory=WatchedWall)
    seconds: float = 0.0
    """Time from before the first worker starts to the last result."""
    env_steps: int = 0
    """Total of all trainings."""
    marks: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """Pairs of time, by `time.perf_counter`, and env steps, for each training."""

    def __call__(self, job: str, points: Sequence[CurvePoint]) -> None:
        if points:
            self.marks.setdefault(job, []).append((time.perf_counter(), points[-1].env_steps))

    def steps_per_second(self) -> float:
        """Total rate of all trainings between their first and last progress reports, so without any
        start-up.

        Raises RuntimeError if a training ended before its second report.
        """
        if any(len(marks) < 2 for marks in self.marks.values()):
            raise RuntimeError("the trainings are too short to be timed: give them more env steps")
        return sum(
            (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
            for marks in self.marks.values()
        )

    def startup_seconds(self) -> float:
        """Time beyond the env steps at that rate: starting workers, first calls, the last policies'
        files."""
        return self.seconds - self.env_steps / self.steps_per_second()


def train_in_pool(
    subject: Subject,
    settings: TrainingSettings,
    sources: Sequence[str],
    workers: int,
    snapshot_s: float = SNAPSHOT_SECONDS,
    run: PoolRun | None = None,
    limits: Limits | None = None,
    wall: Wall | None = None,
) -> PoolRun:
    """Train these rewards side by side, as a search does: process wall unless another `wall` is
    given, real workers, saved states at the default interval.

    Raises RuntimeError where a training fails.
    """
    run = PoolRun() if run is None else run

    async def train(scratch: Path) -> list[TrainingResult]:
        environment, _, task = subject.name.partition("/")
        population = Population(
            Problem(environment, task), settings, -(-len(sources) // workers), snapshot_s=snapshot_s
        )
        async with (
            Fleet(wall or run.wall, scratch / "workers", workers, limits=limits) as fleet,
            fleet.trainings(population, SnapshotStore(scratch), on_progress=run) as trainings,
        ):
            began = time.perf_counter()
            results = await asyncio.gather(
                *(
                    trainings.train(f"job@{seed}", baseline(source), seed)
                    for seed, source in enumerate(sources)
                )
            )
            run.seconds = time.perf_counter() - began
        return results

    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(train(Path(folder)))
    for result in results:
        if result.outcome is None:
            raise RuntimeError(f"a training failed: {result.failure_reason}")
        run.env_steps += result.outcome.env_steps
    return run


def human_source(subject: Subject) -> str:
    """The task's human reward."""
    source = subject.loaded.reward_source(subject.task, "human")
    if source is None:
        raise SystemExit(f"error: {subject.name} has no human reward")
    return source


@contextlib.contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Keep this thread, and all processes that it starts meanwhile, on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def first_cores(count: int) -> list[int]:
    """The first `count` cores that this process may use. Ends the benchmark if there are fewer."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < count:
        raise SystemExit(
            f"error: this benchmark needs {count} cores, and this process may use {len(cores)}"
        )
    return cores[:count]
