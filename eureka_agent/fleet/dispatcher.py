"""Placement of trainings on workers, and of workers on populations. A worker holds one population.
Searches take turns (`fleet/jobs.py`); the jobs of one start by priority, then in the order of their
calls. Each population with work gets at least its share of the workers. If it has less, a worker of
the largest population takes no further jobs, and ends for the smaller population after its last
one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.errors import EnvironmentFaultError, EurekaError, NoRoomError, WorkerDiedError
from eureka_agent.fleet.devices import Device
from eureka_agent.fleet.jobs import Population, TrainingJob, Turns
from eureka_agent.fleet.training_worker import TrainingWorker
from eureka_agent.label_records import CaptionLabel
from eureka_agent.sandbox.wall import Limits, Wall

_MOST_DEATHS_AT_START = 2
"""Deaths in a row after which no further start is tried; one may be an accident."""


class Dispatcher:
    """Starts workers on demand and gives them jobs."""

    def __init__(
        self, wall: Wall, scratch: Path, limits: Limits, devices: Sequence[Device], workers: int
    ) -> None:
        """At most `workers` run at a time and share the `devices`."""
        self._wall = wall
        self._scratch = scratch
        self._limits = limits
        self._held = dict.fromkeys(devices, 0)
        self._most_workers = workers
        self._waiting: list[TrainingJob] = []
        self._turns = Turns()
        self._workers: list[TrainingWorker] = []
        self._reserved: dict[TrainingWorker, Population] = {}
        """Workers that take no further job, with the population that gets their place."""
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._runs: dict[TrainingWorker, asyncio.Task[None]] = {}
        self._most: dict[Population, int] = {}
        """Most workers of a population, once a further one could not be started."""
        self._deaths_at_start: Counter[Population] = Counter()
        """Deaths since a worker of the population last started."""

    def submit(self, job: TrainingJob) -> None:
        self._turns.arrived(job.share, self._waiting)
        self._waiting.append(job)
        self.dispatch()

    def dispatch(self) -> None:
        if self._closed:
            return
        wanted = {job.population for job in self._waiting if not job.share.held}
        for worker, population in list(self._reserved.items()):
            if population not in wanted:
                del self._reserved[worker]
        for job in self._turns.order(self._waiting):
            free = self._worker_for(job.population)
            if free is not None:
                self._waiting.remove(job)
                self._turns.started(job)
                free.reserve(job)
                if free.ready:
                    self.in_background(self._send(free, job))

    @property
    def under_way(self) -> int:
        return sum(len(worker.jobs) for worker in self._workers)

    async def drop(self, job: TrainingJob) -> None:
        if job in self._waiting:
            self._waiting.remove(job)
        for worker in self._workers:
            if worker.jobs.get(job.key) is job:
                await worker.cancel(job)
        self.dispatch()

    async def give_labels(
        self, jobs: Collection[TrainingJob], labels: tuple[CaptionLabel, ...]
    ) -> None:
        """Send labels for these jobs to the workers that have them."""
        await asyncio.gather(*(each.give_labels(jobs, labels) for each in self._workers))

    async def save(self, jobs: Iterable[TrainingJob], timeout_s: float) -> None:
        """Store the states of these jobs that arrive within the timeout."""
        keys = {job.key for job in jobs}
        saving = [
            asyncio.create_task(worker.save())
            for worker in self._workers
            if keys & worker.jobs.keys()
        ]
        try:
            if saving:
                await asyncio.wait(saving, timeout=timeout_s)
        finally:
            for task in saving:
                task.cancel()
            await asyncio.gather(*saving, return_exceptions=True)

    async def close(self) -> None:
        """End all workers and what they train. Callers that wait get a CancelledError."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for job in self._waiting:
            job.result.cancel()
        self._waiting.clear()

    def in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task that ends with the fleet."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ── placement ─────────────────────────────────────────────────────────────────────────────────

    def _worker_for(self, population: Population) -> TrainingWorker | None:
        """The worker with the most free slots, a new one before a busy one; None if full."""
        own = [each for each in self._of(population) if each not in self._reserved]
        best = max(own, key=lambda each: each.free_slots, default=None)
        if (best is None or best.jobs) and len(own) < self._most.get(population, len(own) + 1):
            if self._has_place(population):
                return self._started(population)
            self._reserve_place(population, len(own))
        return best if best is not None and best.free_slots > 0 else None

    def _has_place(self, population: Population) -> bool:
        """True if a worker may be started. Ends an idle worker of another population for it."""
        if len(self._workers) < self._most_workers:
            return True
        for worker in self._workers:
            if not worker.jobs and worker.population != population:
                self._remove(worker)
                self._runs[worker].cancel()
                return True
        return False

    def _reserve_place(self, population: Population, workers: int) -> None:
        """Reserve a busy worker's place for a population with less than its share."""
        populations = {each.population for each in self._workers} | {population}
        workers += sum(each == population for each in self._reserved.values())
        if workers >= max(1, self._most_workers // len(populations)):
            return
        unreserved = [each for each in self._workers if each not in self._reserved]
        sizes = Counter(each.population for each in unreserved)
        largest = max(
            (each for each in unreserved if each.population != population),
            key=lambda each: (sizes[each.population], -len(each.jobs)),
            default=None,
        )
        if largest is not None and (workers == 0 or sizes[largest.population] > workers + 1):
            self._reserved[largest] = population

    def _of(self, population: Population) -> list[TrainingWorker]:
        return [each for each in self._workers if each.population == population]

    # ── workers ───────────────────────────────────────────────────────────────────────────────────

    def _started(self, population: Population) -> TrainingWorker:
        device = min(self._held, key=lambda device: self._held[device])  # surplus workers share
        self._held[device] += 1
        worker = TrainingWorker(population, self._wall, self._scratch, self._limits, device)
        self._workers.append(worker)
        self._runs[worker] = self.in_background(self._run(worker))
        return worker

    def _remove(self, worker: TrainingWorker) -> None:
        self._workers.remove(worker)
        self._reserved.pop(worker, None)
        self._held[worker.device] -= 1  # before its successor looks for one: it takes this

    async def _run(self, worker: TrainingWorker) -> None:
        """Start a worker, serve its events and close it. Jobs may be reserved in it at once."""
        try:
            try:
                await worker.start()
            except EurekaError as error:
                self._start_failed(worker, error)
                return
            self._deaths_at_start.pop(worker.population, None)
            for job in list(worker.jobs.values()):
                await worker.send(job)
            self.dispatch()
            try:
                await worker.serve(self.dispatch)
            except WorkerDiedError as error:
                self._remove(worker)
                for job in list(worker.jobs.values()):
                    del worker.jobs[job.key]
                    job.on_worker_death(job, error)
        except EnvironmentFaultError as error:  # all trainings of the problem would fail
            problem = worker.population.problem
            self._raise(worker, error, lambda job: job.population.problem == problem)
        except Exception as error:  # noqa: BLE001  (a full disk or a defect; it is raised in the callers)
            for job in worker.jobs.values():
                job.raise_error(error)
        finally:
            if worker in self._workers:
                self._remove(worker)
            del self._runs[worker]
            for job in worker.jobs.values():
                job.result.cancel()
            self.dispatch()  # its place is free
            await worker.close()

    def _start_failed(self, worker: TrainingWorker, error: EurekaError) -> None:
        """Queue a dead worker's jobs for a new worker or the others, or fail them."""
        self._remove(worker)
        population, others = worker.population, len(self._of(worker.population))
        if isinstance(error, NoRoomError) and self._workers:
            self._most_workers = len(self._workers)
        else:
            died = isinstance(error, WorkerDiedError)
            self._deaths_at_start[population] += died
            if not died or self._deaths_at_start[population] >= _MOST_DEATHS_AT_START:
                if not others:
                    self._raise(worker, error, lambda job: job.population == population)
                    return
                self._most[population] = others
        self._waiting += [job for job in worker.jobs.values() if not job.result.done()]
        worker.jobs.clear()

    def _raise(
        self, worker: TrainingWorker, error: EurekaError, concerned: Callable[[TrainingJob], bool]
    ) -> None:
        """Raise an error in the callers of the worker's and the waiting jobs that it concerns."""
        for job in [*worker.jobs.values(), *self._waiting]:
            if concerned(job):
                job.raise_error(error)
        self._waiting = [job for job in self._waiting if not job.result.done()]

    async def _send(self, worker: TrainingWorker, job: TrainingJob) -> None:
        try:
            await worker.send(job)
        except Exception as error:  # noqa: BLE001  (a full disk; it is raised in the caller)
            if worker.jobs.get(job.key) is job:  # else it is another worker's by now
                del worker.jobs[job.key]
                job.raise_error(error)
