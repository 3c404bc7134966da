"""Trainings on several workers: who trains where, and what happens when a worker dies.

A worker that dies takes its trainings with it, and they are started again, each from its last saved
state. A reward, which runs in a process of its own, does not end a worker; a job whose worker died
twice has failed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.archive.snapshots import SavedTraining, SnapshotStore
from eureka_agent.errors import EnvironmentFaultError, EurekaError, WorkerDiedError
from eureka_agent.fleet.devices import CPU, Device, DeviceLeases
from eureka_agent.fleet.training_jobs import (
    PauseObserver,
    ProgressObserver,
    TrainingJob,
    TrainingResult,
)
from eureka_agent.fleet.training_worker import TrainingWorker, WorkerSetup
from eureka_agent.protocol.messages import Train
from eureka_agent.records import WrittenFitness
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.wall import Limits, Wall, shared_limits
from eureka_agent.settings import SNAPSHOT_SECONDS, TrainingSettings

__all__ = ["TrainingPool", "TrainingResult"]

_MAX_RETRIES = 1
"""Times that a job is started again after its worker died."""
_MOST_DEATHS_AT_START = 2
"""In a row. The first is taken for an accident, such as a machine that was short of memory."""


class TrainingPool:
    """Trains rewards side by side. Workers are started when there is work for them."""

    def __init__(
        self,
        wall: Wall,
        environment: str,
        task: str | None,
        settings: TrainingSettings,
        slots: int,
        workers: int,
        scratch_root: Path,
        on_progress: ProgressObserver = lambda job, points: None,
        on_retry: Callable[[str, str], None] = lambda job, reason: None,
        on_resume: ProgressObserver = lambda job, points: None,
        timeout_s: float = 120.0,
        limits: Limits | None = None,
        snapshots: SnapshotStore | None = None,
        snapshot_s: float = SNAPSHOT_SECONDS,
        devices: Sequence[Device] = (),
        fitness: WrittenFitness | None = None,
    ) -> None:
        """Starts nothing yet. `slots`: trainings side by side in one worker; `timeout_s`: silence
        after which a worker is killed; `devices`: what the workers share, the CPU's cores where
        none is given; `fitness`: in place of the task's own metric.
        """
        limits = limits or shared_limits(workers)
        self._setup = WorkerSetup(
            wall,
            environment,
            task,
            settings,
            scratch_root,
            limits,
            timeout_s,
            snapshots,
            snapshot_s,
            fitness,
        )
        self._leases = DeviceLeases(devices or CPU.devices(workers))
        self._slots = slots
        self._max_workers = workers
        self._on_progress = on_progress
        self._on_retry = on_retry
        self._on_resume = on_resume
        self._order = itertools.count(1)
        self._waiting: list[TrainingJob] = []
        self._workers: list[TrainingWorker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._deaths_at_start = 0
        """Since a worker was last started."""

    async def train(
        self,
        job: str,
        reward: RewardSpecification,
        seed: int,
        priority: int = 0,
        pauses: tuple[int, ...] = (),
        on_pause: PauseObserver | None = None,
    ) -> TrainingResult:
        """Train one reward, from its last saved state where there is one. A failure of the
        reward's, or of its workers, is part of the result.

        At each of `pauses` (env steps) the training gives its slot away until `on_pause`, which
        gets the points so far and the policy, says "" or why it is to be stopped. Of pauses that an
        earlier process passed `on_pause` is told as well, whatever it says.

        Smaller priorities start first; equal ones in the order of the calls. Raises EurekaError
        when no worker can be started at all, EnvironmentFaultError when the environment's own code
        fails: so will all other trainings. A cancelled call gives its slot back.
        """
        result = asyncio.get_running_loop().create_future()
        command = Train(job=job, reward=reward, seed=seed, pauses=pauses)
        entry = TrainingJob(command, result, (priority, next(self._order)), on_pause=on_pause)
        if not self._take_up(entry):
            self._waiting.append(entry)
            self._dispatch()
        try:
            return await result
        except asyncio.CancelledError:
            await self._forget(entry)
            raise

    @property
    def busy(self) -> bool:
        """True while a worker has a training."""
        return any(worker.jobs for worker in self._workers)

    async def save(self, timeout_s: float) -> None:
        """Store the states of all trainings under way, as far as the workers give them in time: a
        slow iteration is not waited for.

        What cannot be stored (a full disk, a worker that died) goes on from its last state.
        """
        saving = [asyncio.create_task(worker.save()) for worker in self._workers]
        try:
            if saving:
                await asyncio.wait(saving, timeout=timeout_s)
        finally:
            for task in saving:
                task.cancel()
            await asyncio.gather(*saving, return_exceptions=True)

    async def close(self) -> None:
        """End all workers and what they train. Whoever waits for a result gets a CancelledError."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for entry in self._waiting:
            entry.result.cancel()
        self._waiting.clear()

    # ── who trains where ──────────────────────────────────────────────────────────────────────────

    def _dispatch(self) -> None:
        """Give what waits to the workers with the most free slots, in order; start a worker rather
        than fill a busy one."""
        self._waiting.sort(key=lambda entry: entry.order)
        while self._waiting:
            worker = max(self._workers, key=lambda item: item.free_slots, default=None)
            if (worker is None or worker.jobs) and len(self._workers) < self._max_workers:
                lease = self._leases.take()
                worker = TrainingWorker(
                    self._setup, lease, self._slots, self._on_progress, self._take_over
                )
                self._workers.append(worker)
                self._in_background(self._run_worker(worker))
            if worker is None or worker.free_slots <= 0:
                return
            entry = self._waiting.pop(0)
            worker.reserve(entry)
            if worker.ready:
                self._in_background(_given(worker, entry))

    def _take_over(self, entry: TrainingJob) -> None:
        """Have a training that paused in one worker go on in whichever has a slot for it first."""
        store = self._setup.snapshots
        assert store is not None  # there is a saved state
        entry.state = store.state_path(entry.command.job)
        self._waiting.append(entry)
        self._dispatch()

    async def _run_worker(self, worker: TrainingWorker) -> None:
        """A worker's life. Jobs may be reserved in it from the beginning."""
        try:
            try:
                await worker.start()
            except EurekaError as error:
                self._start_failed(worker, error)
                return
            self._deaths_at_start = 0
            for entry in list(worker.jobs.values()):
                await worker.give(entry)
            self._dispatch()
            try:
                await worker.serve(self._dispatch)
            except WorkerDiedError as error:
                self._workers.remove(worker)
                # before its successor looks for a device: it takes this one
                worker.lease.give_back()
                self._start_again(worker, error)
        except EnvironmentFaultError as error:  # whoever trains next would meet it too
            _raise_to([*worker.jobs.values(), *self._waiting], error)
            self._waiting.clear()
        except Exception as error:  # noqa: BLE001  (a full disk, a defect of ours: whoever waits must hear of it)
            _raise_to(worker.jobs.values(), error)
        finally:
            if worker in self._workers:
                self._workers.remove(worker)
            for entry in worker.jobs.values():
                entry.result.cancel()
            await worker.close()

    def _start_failed(self, worker: TrainingWorker, error: EurekaError) -> None:
        """A worker could not be started: its jobs go to its successor or to the other workers, or
        to nobody."""
        self._workers.remove(worker)
        worker.lease.give_back()  # before its successor looks for a device: it takes this one
        self._deaths_at_start += isinstance(error, WorkerDiedError)
        again = isinstance(error, WorkerDiedError) and self._deaths_at_start < _MOST_DEATHS_AT_START
        if again or self._workers:
            if not again:
                self._max_workers = len(self._workers)
            self._waiting += [entry for entry in worker.jobs.values() if not entry.result.done()]
            worker.jobs.clear()
            self._dispatch()
        else:
            _raise_to([*worker.jobs.values(), *self._waiting], error)
            self._waiting.clear()

    # ── when a worker dies ────────────────────────────────────────────────────────────────────────

    def _start_again(self, worker: TrainingWorker, error: WorkerDiedError) -> None:
        for name, entry in list(worker.jobs.items()):
            del worker.jobs[name]
            if entry.result.done():
                continue
            if entry.retries >= _MAX_RETRIES:
                _fail(entry, f"its worker died twice; the last time: {error.message}")
                continue
            entry.retries += 1
            self._on_retry(name, error.message.splitlines()[0])
            if not self._take_up(entry):
                self._waiting.append(entry)
        self._dispatch()

    # ── the rest ──────────────────────────────────────────────────────────────────────────────────

    def _take_up(self, entry: TrainingJob) -> bool:
        """Have a job go on from its last saved state, or start from its first step where there is
        none. True where it is first to be decided whether it goes on."""
        store, job = self._setup.snapshots, entry.command.job
        saved = None if store is None else store.find(job)
        entry.state, entry.points = (
            (None, []) if saved is None else (saved.state, list(saved.points))
        )
        if saved is None:
            return False
        self._on_resume(job, saved.points)
        return self._tell_of_pauses(entry, saved)

    def _tell_of_pauses(self, entry: TrainingJob, saved: SavedTraining) -> bool:
        """Tell of the pauses that are passed, and ask at the one where the training was saved. True
        where it waits for the answer."""
        waits = False
        for steps in entry.command.pauses if entry.on_pause is not None else ():
            reached = next(
                (at for at, point in enumerate(entry.points, 1) if point.env_steps >= steps), None
            )
            if reached is None or entry.on_pause is None:
                continue
            waits = saved.policy is not None and reached == len(entry.points)
            decision = entry.on_pause(
                tuple(entry.points[:reached]), saved.policy if waits else None
            )
            self._in_background(
                self._decided(entry, decision) if waits else _heard(entry, decision)
            )
        return waits

    async def _decided(self, entry: TrainingJob, decision: Awaitable[str]) -> None:
        """Have a training that was saved at a pause go on, or stop it."""
        try:
            stop = await decision
        except Exception as error:  # noqa: BLE001  (a full disk: whoever waits for the training must hear of it)
            _raise_to([entry], error)
            return
        if entry.result.done():  # nobody waits for it any more
            return
        if stop:
            entry.result.set_result(
                TrainingResult(None, tuple(entry.points), {}, "stopped", stop, entry.retries)
            )
            return
        self._waiting.append(entry)
        self._dispatch()

    async def _forget(self, entry: TrainingJob) -> None:
        if entry in self._waiting:
            self._waiting.remove(entry)
        for worker in self._workers:
            if worker.jobs.get(entry.command.job) is entry:
                await worker.take_back(entry)
        self._dispatch()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _given(worker: TrainingWorker, entry: TrainingJob) -> None:
    """Give a job to a worker that is ready."""
    try:
        await worker.give(entry)
    except Exception as error:  # noqa: BLE001  (a full disk: whoever waits for the training must hear of it)
        worker.jobs.pop(entry.command.job, None)
        _raise_to([entry], error)


async def _heard(entry: TrainingJob, decision: Awaitable[str]) -> None:
    """Tell of a pause that is over: the decision was to go on."""
    try:
        await decision
    except Exception as error:  # noqa: BLE001  (a full disk: whoever waits for the training must hear of it)
        _raise_to([entry], error)


def _raise_to(entries: Iterable[TrainingJob], error: Exception) -> None:
    for entry in entries:
        if not entry.result.done():
            entry.result.set_exception(error)


def _fail(entry: TrainingJob, reason: str) -> None:
    if not entry.result.done():
        entry.result.set_result(
            TrainingResult(None, tuple(entry.points), {}, "worker-died", reason, entry.retries)
        )
