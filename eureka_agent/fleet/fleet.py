"""This machine's workers, shared by any number of searches in one process."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.boundary.commands import Train
from eureka_agent.errors import GpuLostError, WorkerDiedError, WorkerLostError
from eureka_agent.fleet import jobs
from eureka_agent.fleet.devices import CPU, Device, Hardware
from eureka_agent.fleet.dispatcher import Dispatcher
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.ray_cluster import Cluster
from eureka_agent.fleet.warm_worker import FilmMaker
from eureka_agent.label_records import CaptionLabel
from eureka_agent.records import ParameterStage
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.wall import Limits, Wall, shared_limits

_MAX_RETRIES = 1
_MOST_LOST_GPUS = 3
"""Restarts of a job after a GPU failed under it. The next worker may get another GPU."""


@dataclass(eq=False)
class Trainings:
    """Trains the rewards of one search, in shared workers. See `Fleet.trainings`."""

    _dispatcher: Dispatcher
    _order: itertools.count[int]
    _population: jobs.Population
    _snapshots: SnapshotStore | None
    _on_progress: jobs.ProgressObserver
    _on_retry: Callable[[str, str], None]
    _on_resume: jobs.ProgressObserver
    _share: jobs.Share = field(default_factory=jobs.Share)
    _labels: jobs.Labels | None = None
    _jobs: set[jobs.TrainingJob] = field(default_factory=set)
    _policies: list[Path] = field(default_factory=list)

    async def train(
        self,
        name: str,
        reward: RewardSpecification,
        seed: int,
        priority: int = 0,
        rungs: tuple[int, ...] = (),
        on_rung: jobs.RungObserver | None = None,
        curriculum: tuple[ParameterStage, ...] = (),
    ) -> jobs.TrainingResult:
        """Train one reward, from its last saved state if there is one. A failure of the reward or
        of its workers is a result. `on_rung` gets the policy at each of `rungs` (env steps), also
        one that an earlier process stored and did not delete. `curriculum`: distributions of the
        environment's parameters. Smaller priorities start first, equal ones in the order of the
        calls. Raises EurekaError when no worker can be started, EnvironmentFaultError when the
        environment's own code fails, as it would in all other trainings, GpuLostError where GPUs
        keep failing. A cancelled call frees its slot."""
        number = next(self._order)
        more = {"rungs": rungs, "curriculum": curriculum}
        job = jobs.TrainingJob(
            name,
            self._population,
            Train(job=f"{number}:{name}", reward=reward, seed=seed, **more),
            asyncio.get_running_loop().create_future(),
            (priority, number),
            self._snapshots,
            self._on_progress,
            self._restart,
            on_rung,
            self._share,
            self._labels if reward.kind == "labels" else None,
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
        return bool(self._jobs)

    async def save(self, timeout_s: float) -> None:
        """Store the states of the running trainings that arrive within the timeout. Another
        training (a slow iteration, a full disk, a dead worker) resumes from its last state."""
        await self._dispatcher.save(self._jobs, timeout_s)

    async def give_labels(self, labels: tuple[CaptionLabel, ...]) -> None:
        """Send labels to all trainings under way; later ones begin with them."""
        labelled = {job for job in self._jobs if job.labels is not None}
        await self._dispatcher.give_labels(labelled, labels)

    async def close(self) -> None:
        """Cancel all trainings and delete their policies. Callers get a CancelledError."""
        for job in list(self._jobs):
            job.result.cancel()
            await self._dispatcher.drop(job)
        for policy in self._policies:
            policy.unlink(missing_ok=True)

    def _start(self, job: jobs.TrainingJob) -> None:
        job.state, job.points = None, []
        if self._snapshots is not None and (saved := self._snapshots.find(job.name)) is not None:
            job.state, job.points = saved.state, list(saved.points)
            self._on_resume(job.name, saved.points)
            for env_steps, policy in saved.rungs.items():
                if job.on_rung is not None:
                    job.on_rung(env_steps, policy)
        self._dispatcher.submit(job)

    def _restart(self, job: jobs.TrainingJob, error: WorkerDiedError) -> None:
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
                failure = "worker-died", text, job.retries
                job.resolve(jobs.TrainingResult(None, tuple(job.points), {}, *failure))
                return
            job.retries += 1
        self._on_retry(job.name, error.message.splitlines()[0])
        self._start(job)


_Worker = TypeVar("_Worker", DryRunner, Evaluator)


class _Shared(Generic[_Worker]):
    """Workers by problem, each shared by the searches of that problem."""

    def __init__(self) -> None:
        self._workers: dict[jobs.Problem, _Worker] = {}
        self._users: Counter[jobs.Problem] = Counter()
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def of(
        self, problem: jobs.Problem, start: Callable[[], Awaitable[_Worker]]
    ) -> AsyncIterator[_Worker]:
        """The problem's worker, which ends with the last block. Raises the errors of `start`."""
        self._users[problem] += 1
        try:
            async with self._starting:  # the first caller starts it, or gets the error
                if problem not in self._workers:
                    self._workers[problem] = await start()
            yield self._workers[problem]
        finally:
            self._users[problem] -= 1
            if not self._users[problem] and problem in self._workers:
                await self._workers.pop(problem).close()


class Fleet:
    """Trains and scores policies for searches. It starts workers on demand."""

    def __init__(
        self,
        wall: Wall,
        scratch: Path,
        workers: int = 1,
        devices: Sequence[Device] = (),
        limits: Limits | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """At most `workers` train at a time. They share the `devices`, by default the CPU's cores.
        `limits` holds for each worker; by default they share the memory. Those that train do so on
        the `cluster`, if there is one."""
        self._wall = wall
        self._scratch = scratch
        training_wall = wall if cluster is None else cluster.wall
        limits, devices = limits or shared_limits(workers), devices or CPU.devices(workers)
        self.dispatcher = Dispatcher(training_wall, scratch / "trainings", limits, devices, workers)
        self._order = itertools.count(1)
        self._evaluators = _Shared[Evaluator]()

    async def __aenter__(self) -> Fleet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispatcher.close()

    @asynccontextmanager
    async def trainings(
        self,
        population: jobs.Population,
        snapshots: SnapshotStore | None = None,
        on_progress: jobs.ProgressObserver = lambda job, points: None,
        on_retry: Callable[[str, str], None] = lambda job, reason: None,
        on_resume: jobs.ProgressObserver = lambda job, points: None,
        share: jobs.Share | None = None,
        labels: jobs.Labels | None = None,
    ) -> AsyncIterator[Trainings]:
        """The trainings of one search, which end with the block. `snapshots` stores their states;
        None: nothing is saved. Each observer gets a job's name: `on_progress` with new points of
        its curve, `on_retry` with the reason of its worker's death, `on_resume` with the points
        before its saved state. `share`: its share of the fleet, by default an equal one.
        `labels`: for rewards that are learned from labels."""
        observers = on_progress, on_retry, on_resume
        rest = *observers, share or jobs.Share(), labels
        trainings = Trainings(self.dispatcher, self._order, population, snapshots, *rest)
        try:
            yield trainings
        finally:
            await trainings.close()

    @asynccontextmanager
    async def evaluator(self, problem: jobs.Problem) -> AsyncIterator[Evaluator]:
        """The evaluator of a problem, shared by its searches. It ends with the last block."""

        async def start() -> Evaluator:
            scratch = self._scratch / "evaluations"
            return Evaluator(self._wall, problem, scratch, most_workers=usable_cores())

        async with self._evaluators.of(problem, start) as evaluator:
            yield evaluator

    @asynccontextmanager
    async def film_maker(self, problem: jobs.Problem) -> AsyncIterator[FilmMaker]:
        """A maker of videos of a problem, whose worker starts on demand and ends with the block."""
        maker = FilmMaker(self._wall, problem, self._scratch / "films")
        try:
            yield maker
        finally:
            await maker.close()


class Machine:
    """Workers shared by searches: a fleet for each device, a dry runner for each problem."""

    def __init__(
        self, wall: Wall, scratch: Path, workers: int = 0, cluster: Cluster | None = None
    ) -> None:
        """Starts nothing yet. At most `workers` train at a time on a kind of device; 0: one on each
        core or GPU. They train on a `cluster`, if there is one."""
        self.cluster = cluster
        self.wall = wall
        self._scratch = scratch
        self._workers = workers
        self._fleets: dict[Hardware, Fleet] = {}
        self._dry_runners = _Shared[DryRunner]()
        self._views = itertools.count(1)

    async def __aenter__(self) -> Machine:
        return self

    async def __aexit__(self, *_: object) -> None:
        for fleet in self._fleets.values():
            await fleet.dispatcher.close()

    def workers(self, hardware: Hardware) -> int:
        if self.cluster is not None:
            return self._workers or self.cluster.places(hardware.kind)
        return self._workers or hardware.places

    def fleet(self, hardware: Hardware) -> Fleet:
        if hardware not in self._fleets:
            workers, scratch = self.workers(hardware), self._scratch / f"fleet-{len(self._fleets)}"
            devices = hardware.devices(workers)
            self._fleets[hardware] = Fleet(
                self.wall, scratch, workers, devices, cluster=self.cluster
            )
        return self._fleets[hardware]

    @asynccontextmanager
    async def dry_runner(self, problem: jobs.Problem, timeout_s: float) -> AsyncIterator[DryRunner]:
        """A started dry runner, shared by searches of the problem. It ends with the last block."""

        async def start() -> DryRunner:
            runner = DryRunner(self.wall, problem, self._scratch / "dry-runs", timeout_s)
            await runner.start()
            return runner

        async with self._dry_runners.of(problem, start) as runner:
            yield runner.view(f"{next(self._views)}-", timeout_s)

    def dispatch(self) -> None:
        for fleet in self._fleets.values():
            fleet.dispatcher.dispatch()

    @property
    def under_way(self) -> int:
        return sum(fleet.dispatcher.under_way for fleet in self._fleets.values())
