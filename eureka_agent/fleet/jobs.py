"""Trainings as jobs: what they share, the job, the decision at its pauses, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.fleet.problem import Problem
from eureka_agent.protocol.commands import Train
from eureka_agent.records import CurvePoint, Outcome
from eureka_agent.settings import SNAPSHOT_SECONDS, TrainingSettings

PauseObserver = Callable[[tuple[CurvePoint, ...], Path | None], Awaitable[str]]
ProgressObserver = Callable[[str, tuple[CurvePoint, ...]], None]


@dataclass(frozen=True)
class Population:
    """Trainings that can share one simulator batch in one worker. Equal populations do."""

    problem: Problem
    settings: TrainingSettings
    slots: int
    """Trainings side by side in one worker."""
    timeout_s: float = 120.0
    """Seconds without a sign of life after which a worker is killed."""
    snapshot_s: float = SNAPSHOT_SECONDS
    """Seconds between two saved states of a training: what a kill costs at most."""
    kernels: Path | None = None
    """Folder of the environment's compiled kernels, on a GPU."""


@dataclass(frozen=True)
class TrainingResult:
    """An outcome with its policies, or the reason why there is none."""

    outcome: Outcome | None
    points: tuple[CurvePoint, ...]
    policies: Mapping[int, Path]
    """Safetensors files of the best checkpoints by their index, none for a failure. They stay until
    the search has left the fleet."""
    failure_code: str = ""
    """`"not-a-number"`, `"raised"`, `"timeout"`, `"contract"` (the reward's fault), `"fitness"`,
    `"worker-died"`, `"fault"`, or `"stopped"` by the caller at a pause; empty for an outcome."""
    failure_reason: str = ""
    retries: int = 0
    """Times that it was started again because its worker died."""
    timers: dict[str, float] = field(default_factory=dict)
    """Its worker's wall seconds up to here, by part: physics, policy, reward, update, rest."""

    @property
    def policy(self) -> Path | None:
        """The policy of the checkpoint that the outcome names."""
        return None if self.outcome is None else self.policies[self.outcome.best_checkpoint]


@dataclass(eq=False)
class TrainingJob:
    """A training that was asked for and has no result yet."""

    name: str
    """The search's name for it; the command's is unique in the fleet."""
    population: Population
    command: Train
    result: asyncio.Future[TrainingResult]
    order: tuple[int, int]
    """Priority, then the number of the call. Smaller goes first."""
    snapshots: SnapshotStore | None
    """Keeps its states; None: nothing does."""
    on_progress: ProgressObserver
    on_worker_death: Callable[[TrainingJob, str], None]
    """Decides, with the reason, whether the job starts again."""
    on_pause: PauseObserver | None = None
    """Gets the points so far and the policy of the moment at each of the command's pauses, and
    answers why the training is to be stopped, or "". The policy (safetensors) is gone once there is
    an answer; it is None for a pause that an earlier process passed."""
    points: list[CurvePoint] = field(default_factory=list)
    state: Path | None = None
    """Saved state from which it goes on; `points` begins with the points that belong to it."""
    retries: int = 0

    @property
    def key(self) -> str:
        """Name of the job in its worker."""
        return self.command.job

    def resolve(self, result: TrainingResult) -> None:
        """Give the result to the caller, unless the caller has one or has left."""
        if not self.result.done():
            self.result.set_result(result)

    def fail(self, code: str, reason: str) -> None:
        """Give the caller a result without an outcome."""
        self.resolve(TrainingResult(None, tuple(self.points), {}, code, reason, self.retries))

    def raise_error(self, error: Exception) -> None:
        """Raise an error where the caller waits."""
        if not self.result.done():
            self.result.set_exception(error)
