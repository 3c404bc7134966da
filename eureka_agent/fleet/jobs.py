"""Trainings as jobs: problem, population, job, result, and the turns of searches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.boundary.commands import Train
from eureka_agent.errors import WorkerDiedError
from eureka_agent.label_records import CaptionLabel, CaptionMet, LabelMethod
from eureka_agent.records import CurvePoint, Outcome, WrittenFitness
from eureka_agent.settings import SNAPSHOT_SECONDS, TrainingSettings


@dataclass(frozen=True)
class Problem:
    """An environment and a task. Workers of one problem can replace each other."""

    environment: str
    task: str | None = None
    """None: the environment's first."""
    fitness: WrittenFitness | None = None


@dataclass(eq=False)
class Share:
    """Share of one search in a fleet that others use too."""

    held: bool = False
    """True while none of its jobs is to start; those under way go on."""
    turn: int = 0
    """Env steps of its trainings so far (`fleet/jobs.py`)."""


RungObserver = Callable[[int, Path], None]
"""Gets the env steps of a rung and the file of the policy there (safetensors), which it deletes
after the score. The same rung may come again after a restart."""
ProgressObserver = Callable[[str, tuple[CurvePoint, ...]], None]


class Labels(Protocol):
    """Labels of captions for the trainings of one search."""

    @property
    def method(self) -> LabelMethod: ...
    @property
    def known(self) -> tuple[CaptionLabel, ...]: ...
    def want(self, captions: Sequence[CaptionMet]) -> None:
        """Note captions without labels that a training met. Returns at once."""


@dataclass(frozen=True)
class Population:
    """Trainings that can share one simulator batch. Jobs of equal populations share a worker."""

    problem: Problem
    settings: TrainingSettings
    slots: int
    timeout_s: float = 120.0
    """Seconds without progress after which a worker is killed."""
    snapshot_s: float = SNAPSHOT_SECONDS
    """Seconds between two saved states of a training, the most that a kill costs."""
    kernels: Path | None = None
    designs: bool = False
    """Policies may have observations that are designed."""


@dataclass(frozen=True)
class TrainingResult:
    """An outcome with its policies, or the reason of a failure."""

    outcome: Outcome | None
    points: tuple[CurvePoint, ...]
    policies: Mapping[int, Path]
    """Safetensors files of the best checkpoints by their index. They stay until the search ends."""
    failure_code: str = ""
    """`"not-a-number"`, `"raised"`, `"timeout"`, `"contract"` (the reward's fault), `"fitness"`,
    `"worker-died"`, `"fault"`; empty for an outcome."""
    failure_reason: str = ""
    retries: int = 0
    timers: dict[str, float] = field(default_factory=dict)
    """Wall seconds of its worker so far, by part: physics, policy, reward, update, rest."""

    @property
    def policy(self) -> Path | None:
        """The policy of the checkpoint that the outcome names."""
        return None if self.outcome is None else self.policies[self.outcome.best_checkpoint]


@dataclass(eq=False)
class TrainingJob:
    """A training without a result yet."""

    name: str
    population: Population
    command: Train
    result: asyncio.Future[TrainingResult]
    order: tuple[int, int]
    """Priority, then the number of the call. Smaller starts first."""
    snapshots: SnapshotStore | None
    """Store of its saved states; None: nothing is saved."""
    on_progress: ProgressObserver
    on_worker_death: Callable[[TrainingJob, WorkerDiedError], None]
    """Gets the job and the error; restarts it or gives it up."""
    on_rung: RungObserver | None = None
    share: Share = field(default_factory=Share)
    labels: Labels | None = None
    """None where its reward is not learned from labels."""
    points: list[CurvePoint] = field(default_factory=list)
    state: Path | None = None
    """Saved state to resume from, at the end of `points`."""
    retries: int = 0
    lost_gpus: int = 0

    @property
    def key(self) -> str:
        return self.command.job

    def resolve(self, result: TrainingResult) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def raise_error(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


class Turns:
    """Order in which waiting jobs get slots: the search with the least env steps is first, within a
    search the job with the smallest order. Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM
    1996) on env steps. A search that comes late, or that had nothing to train, claims nothing for
    that time."""

    def __init__(self) -> None:
        self._now = 0
        """Virtual time: the turn of the last search that started a job."""

    def arrived(self, share: Share, others: Iterable[TrainingJob]) -> None:
        """Tell of a search's new job. `others`: the jobs that wait."""
        if not any(each.share is share for each in others):
            share.turn = max(share.turn, self._now)

    def started(self, job: TrainingJob) -> None:
        self._now = max(self._now, job.share.turn)
        job.share.turn += job.population.settings.env_steps

    @staticmethod
    def order(waiting: Iterable[TrainingJob]) -> Iterator[TrainingJob]:
        """Jobs in turn, looked up when each is due, so that those started meanwhile count."""
        queues: dict[Share, list[TrainingJob]] = {}
        for job in sorted(waiting, key=lambda job: job.order, reverse=True):
            if not job.share.held:
                queues.setdefault(job.share, []).append(job)
        while queues:
            share = min(queues, key=lambda each: (each.turn, queues[each][-1].order))
            yield queues[share].pop()
            if not queues[share]:
                del queues[share]
