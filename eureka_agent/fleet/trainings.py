"""The trainings of one search on a fleet: saved states and restarts.

A dead worker's trainings are restarted, each from its last saved state. A training whose worker
died twice has failed. A reward runs in its own process and cannot end a worker.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.errors import GpuLostError, WorkerDiedError, WorkerLostError
from eureka_agent.fleet.dispatcher import Dispatcher
from eureka_agent.fleet.jobs import (
    Population,
    ProgressObserver,
    RungObserver,
    Share,
    TrainingJob,
    TrainingResult,
)
from eureka_agent.protocol.commands import Train
from eureka_agent.records import ParameterStage
from eureka_agent.rewards import RewardSpecification

_MAX_RETRIES = 1
"""Restarts of a job after its worker's death."""
_MOST_LOST_GPUS = 3
"""Restarts of a job after a GPU failed under it. The next worker may get another GPU."""


@dataclass(eq=False)
class Trainings:
    """Trains the rewards of one search, in workers shared with other searches. See
    `Fleet.trainings`."""

    _dispatcher: Dispatcher
    _order: itertools.count[int]
    """Numbers the jobs of all searches."""
    _population: Population
    _snapshots: SnapshotStore | None
    _on_progress: ProgressObserver
    _on_retry: Callable[[str, str], None]
    _on_resume: ProgressObserver
    _share: Share = field(default_factory=Share)
    _jobs: set[TrainingJob] = field(default_factory=set)
    _policies: list[Path] = field(default_factory=list)
    """Policy files of all results."""

    async def train(
        self,
        name: str,
        reward: RewardSpecification,
        seed: int,
        priority: int = 0,
        rungs: tuple[int, ...] = (),
        on_rung: RungObserver | None = None,
        curriculum: tuple[ParameterStage, ...] = (),
    ) -> TrainingResult:
        """Train one reward, from its last saved state if there is one. A failure of the reward or
        of its workers is a result.

        `on_rung` gets the policy at each of `rungs` (env steps), also one that an earlier process
        stored and did not delete. `curriculum`: distributions of the environment's parameters.

        Smaller priorities start first, equal ones in the order of the calls. Raises EurekaError
        when no worker can be started, EnvironmentFaultError when the environment's own code fails,
        as it would in all other trainings, GpuLostError where GPUs keep failing. A cancelled call
        frees its slot.
        """
        number = next(self._order)
        job = TrainingJob(
            name,
            self._population,
            Train(
                job=f"{number}:{name}", reward=reward, seed=seed, rungs=rungs, curriculum=curriculum
            ),
            asyncio.get_running_loop().create_future(),
            (priority, number),
            self._snapshots,
            self._on_progress,
            self._restart,
            on_rung,
            self._share,
        )
        self._jobs.add(job)
        try:
            self._start(job)
            result = await job.result
            self._policies += result.policies.values()
            return result
        except asyncio.CancelledError:
            await self._dispatcher.drop(job)
            raise
        finally:
            self._jobs.discard(job)

    @property
    def busy(self) -> bool:
        """True while a training has no result."""
        return bool(self._jobs)

    async def save(self, timeout_s: float) -> None:
        """Store the states of the running trainings that arrive within the timeout.

        Another training (a slow iteration, a full disk, a dead worker) resumes from its last state.
        """
        await self._dispatcher.save(self._jobs, timeout_s)

    async def close(self) -> None:
        """Cancel all trainings and delete the policies of the finished ones. Callers that wait get
        a CancelledError."""
        for job in list(self._jobs):
            job.result.cancel()
            await self._dispatcher.drop(job)
        for policy in self._policies:
            policy.unlink(missing_ok=True)

    def _start(self, job: TrainingJob) -> None:
        """Start a job from its last saved state, or from the first step."""
        job.state, job.points = None, []
        if self._snapshots is not None and (saved := self._snapshots.find(job.name)) is not None:
            job.state, job.points = saved.state, list(saved.points)
            self._on_resume(job.name, saved.points)
            for env_steps, policy in saved.rungs.items():
                if job.on_rung is not None:
                    job.on_rung(env_steps, policy)
        self._dispatcher.submit(job)

    def _restart(self, job: TrainingJob, error: WorkerDiedError) -> None:
        if job.result.done():
            return
        if isinstance(error, GpuLostError):
            job.lost_gpus += 1
            if job.lost_gpus > _MOST_LOST_GPUS:
                job.raise_error(error)
                return
        elif not isinstance(error, WorkerLostError):
            if job.retries >= _MAX_RETRIES:
                text = f"its worker died twice; the last time: {error.message}"
                job.resolve(
                    TrainingResult(None, tuple(job.points), {}, "worker-died", text, job.retries)
                )
                return
            job.retries += 1
        self._on_retry(job.name, error.message.splitlines()[0])
        self._start(job)
