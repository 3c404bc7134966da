"""One training worker and its jobs: its events become results, or the reason of its death."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from eureka_agent.archive.files import copy_file
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.errors import EurekaError, WorkerDiedError
from eureka_agent.fleet.devices import Lease
from eureka_agent.fleet.jobs import PauseObserver, Population, TrainingJob, TrainingResult
from eureka_agent.protocol.commands import Cancel, Prepare, Proceed, Save
from eureka_agent.protocol.events import (
    AllSaved,
    Event,
    Fault,
    Paused,
    Prepared,
    Progress,
    Saved,
    Trained,
    TrainingFailed,
)
from eureka_agent.records import CurvePoint, Outcome
from eureka_agent.sandbox.client import START_SECONDS, WorkerClient
from eureka_agent.sandbox.inbox import DO_NOT_TRUST, WorkerFileError, check_policy, check_state
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.sandbox.worker_faults import raised_by, stuck

MOST_POLICIES = 100
"""That a worker may give for one training, whatever was asked for."""
_ITERATION_SHARE = 0.7
"""Share of the silence that is allowed which the environment may take for the steps of one
iteration, so that the worker can still say where it stands."""


class TrainingWorker:
    """Gives jobs to one worker process until it dies or is closed."""

    def __init__(
        self,
        population: Population,
        wall: Wall,
        scratch: Path,
        limits: Limits,
        lease: Lease,
        take_over: Callable[[TrainingJob], None] | None = None,
    ) -> None:
        """Starts nothing yet. `lease`: of the device that it trains on; given back when it is
        closed. `take_over` has a training that paused here go on in the next free slot of any
        worker."""
        self.population = population
        self._wall = wall
        self._scratch = scratch
        self._limits = limits
        self.lease = lease
        self._take_over = take_over
        self._client: WorkerClient | None = None
        self._timers: dict[str, float] = {}
        self._paused: dict[str, asyncio.Task[None]] = {}
        self._paused_at: dict[str, tuple[Path, str]] = {}
        """Policy and file of the state of each of these."""
        self._all_saved: asyncio.Future[None] | None = None
        """Until the states that were asked for have come."""
        self._pauses_left: dict[str, int] = {}
        """Of each job that it was given: how often it may still pause."""
        self._saved: dict[str, int] = {}
        """Of each of these: iterations that its last state from this worker holds."""
        self.jobs: dict[str, TrainingJob] = {}
        """Reserved or given to the worker and without a result, by name."""
        self.ready = False
        """True once jobs can be given to it."""

    @property
    def free_slots(self) -> int:
        """Trainings that could start at once."""
        return self.population.slots - self._active

    @property
    def _active(self) -> int:
        """Jobs that are not paused."""
        return len(self.jobs) - len(self._paused)

    async def start(self) -> None:
        """Start the process and make its population. Raises EurekaError for an environment that
        cannot be loaded."""
        population, problem = self.population, self.population.problem
        device = self.lease.device
        limits = replace(device.limit(self._limits), kernels=population.kernels)
        self._client = await WorkerClient.start(
            self._wall, self._scratch, limits, problem.environment
        )
        self._client.patience_s = max(self._client.patience_s, population.timeout_s)
        await self._client.open(
            problem.environment, problem.task, device.name_within, fitness=problem.fitness
        )
        await self._client.send(
            Prepare(
                settings=population.settings,
                slots=population.slots,
                snapshot_s=population.snapshot_s,
                iteration_limit_s=_ITERATION_SHARE * population.timeout_s,
            )
        )
        try:
            event = await self._client.receive(START_SECONDS)
        except TimeoutError:
            raise WorkerDiedError(
                f"the worker did not prepare a training within {START_SECONDS:g} s", ""
            ) from None
        if isinstance(event, Fault):
            raise raised_by(event, EurekaError, problem.environment)
        if not isinstance(event, Prepared):
            raise WorkerDiedError(
                f"the worker answered 'prepare' with {event.type!r}", "expected 'prepared'"
            )
        self._client.last_sign_of_life = time.monotonic()
        self.ready = True

    def reserve(self, job: TrainingJob) -> None:
        """Take a slot for a job that `give` sends."""
        if not self._active and self._client is not None:  # it had nothing to say until now
            self._client.last_sign_of_life = time.monotonic()
        self.jobs[job.key] = job
        self._pauses_left[job.key] = len(job.command.pauses)
        self._saved[job.key] = 0

    async def give(self, job: TrainingJob) -> None:
        """Send a reserved job to the worker, unless it was taken back meanwhile."""
        assert self._client is not None
        if self.jobs.get(job.key) is not job:
            return
        command = job.command
        if job.state is not None:
            name = f"resumed-{job.order[1]}.safetensors"
            await self._client.give(job.state, name)
            command = command.model_copy(update={"snapshot": name})
        await self._client.send(command)

    async def take_back(self, job: TrainingJob) -> None:
        """Have the worker drop a job that nobody waits for any more."""
        del self.jobs[job.key]
        if self.ready and self._client is not None:
            await self._client.send(Cancel(job=job.key))

    async def save(self) -> None:
        """Store the states of all its trainings, those at a pause included. A worker that ends
        meanwhile gives none."""
        client = self._client
        if client is None or not self.ready:
            return
        for key, (policy, snapshot) in list(self._paused_at.items()):
            # another may have been decided while one was stored
            if key in self._paused_at and (job := self.jobs.get(key)) is not None:
                if job.snapshots is None:
                    continue
                copy_file(policy, job.snapshots.policy_path(job.name))
                await self._keep(job, snapshot, job.snapshots)
        self._all_saved = asyncio.get_running_loop().create_future()
        await client.send(Save())
        await self._all_saved

    async def serve(self, on_slot_free: Callable[[], None]) -> None:
        """Turn events into results. Raises WorkerDiedError when the worker ends or is silent for
        too long, EnvironmentFaultError when no reward is to blame for its end; its jobs are left in
        `jobs`."""
        assert self._client is not None
        client, timeout_s = self._client, self.population.timeout_s
        while True:
            silence = time.monotonic() - client.last_sign_of_life if self._active else 0.0
            event: Event | None = None
            with contextlib.suppress(TimeoutError):
                event = await client.receive(max(0.05, timeout_s - silence))
            if event is not None and await self._take(event, on_slot_free):
                client.last_sign_of_life = time.monotonic()
            elif self._active and time.monotonic() - client.last_sign_of_life >= timeout_s:
                await client.kill()
                if (
                    error := stuck(
                        client.last_words(), timeout_s, self.population.problem.environment
                    )
                ) is not None:
                    raise error
                raise WorkerDiedError(
                    f"the worker gave no sign of life for {timeout_s:g} s and was killed",
                    "free the machine of other work, or raise --training-timeout",
                )

    async def _take(self, event: Event, on_slot_free: Callable[[], None]) -> bool:
        """What an event says of its jobs; whether it says anything: only of that there is an
        end."""
        if isinstance(event, Progress):
            return self._take_progress(event)
        if isinstance(event, Saved):
            return await self._take_saved(event)
        if (
            isinstance(event, AllSaved)
            and self._all_saved is not None
            and not self._all_saved.done()
        ):
            self._all_saved.set_result(None)
        if isinstance(event, Fault) and event.job is None:
            raise raised_by(event, WorkerDiedError, self.population.problem.environment)
        if not isinstance(event, (Paused, Trained, TrainingFailed, Fault)):
            return False
        news = event.job in self.jobs
        if isinstance(event, Paused):
            news = await self._ask(event)
        elif isinstance(event, Trained):
            await self._take_trained(event)
        elif isinstance(event, TrainingFailed):
            self._finish(event.job, None, failure=(event.code, event.reason))
        elif event.job is not None:
            if event.environment:
                raise raised_by(event, WorkerDiedError, self.population.problem.environment)
            self._finish(event.job, None, failure=("fault", event.message))
        on_slot_free()
        return news

    async def _ask(self, event: Paused) -> bool:
        """Let whoever asked for a pause decide; meanwhile the job has no slot. False where nobody
        asked for it."""
        job = self.jobs.get(event.job)
        if job is not None and job.on_pause is not None and event.job not in self._paused:
            self._pauses_left[event.job] -= 1
            if self._pauses_left[event.job] < 0:
                raise _violation("it paused a training more often than it was asked to")
            policy = await self._take_policy(event.policy, f"{job.order[1]}-paused")
            self._paused_at[event.job] = policy, event.snapshot
            self._paused[event.job] = asyncio.create_task(
                self._decide(job, job.on_pause, policy, event.snapshot)
            )
            return True
        self._drop(event.policy, event.snapshot)
        return False

    async def _decide(
        self, job: TrainingJob, on_pause: PauseObserver, policy: Path, snapshot: str
    ) -> None:
        key = job.key
        try:
            stop = await on_pause(tuple(job.points), policy)
        except Exception as error:  # noqa: BLE001  (whoever waits for the training must hear of it)
            job.raise_error(error)
            return
        finally:
            if not self._active and self._client is not None:  # it had nothing to say until now
                self._client.last_sign_of_life = time.monotonic()
            self._paused.pop(key, None)
            self._paused_at.pop(key, None)
            policy.unlink(missing_ok=True)
        if self.jobs.get(key) is not job or self._client is None:  # dead, or the caller has left
            self._drop(snapshot)
            return
        if not stop and self.free_slots < 0 and await self._hand_over(job, snapshot):
            return
        self._drop(snapshot)
        await self._client.send(Cancel(job=key) if stop else Proceed(job=key))
        if stop:
            self._finish(key, None, failure=("stopped", stop))

    async def _hand_over(self, job: TrainingJob, snapshot: str) -> bool:
        """Submit a training again that would wait here for a slot; False where it stays.

        Its state is stored only now that it goes on: a resumed run would pass the pause unasked.
        """
        key, store, client = job.key, job.snapshots, self._client
        if self._take_over is None or store is None or client is None:
            return False
        try:
            await self._keep(job, snapshot, store)
        except WorkerDiedError:
            # the state is not there: the worker died over it, or goes on with the training itself
            return self.jobs.get(key) is not job
        except EurekaError as error:  # a full disk: the caller must hear of it
            if self.jobs.get(key) is job:
                job.raise_error(error)
            return True
        if self.jobs.get(key) is job:  # else its worker died meanwhile, or the caller has left
            del self.jobs[key]
            job.state = store.state_path(job.name)
            self._take_over(job)
            await client.send(Cancel(job=key))
        return True

    async def close(self) -> None:
        """End the process and give its device back."""
        for task in list(self._paused.values()):
            task.cancel()
        self._paused.clear()
        if self._all_saved is not None and not self._all_saved.done():
            self._all_saved.set_result(None)
        client, self._client = self._client, None
        try:
            if client is not None:
                await client.close()
        finally:
            self.lease.give_back()

    def _take_progress(self, event: Progress) -> bool:
        """Whether there is a new point in it of one of its jobs, of which each has but so many."""
        self._timers = event.timers
        news = False
        for name, points in event.points.items():
            job = self.jobs.get(name)
            if job is not None:
                if len(job.points) + len(points) > self.population.settings.updates:
                    raise _violation(
                        "it gave more points of a curve than the training has iterations"
                    )
                job.points += points
                if any(
                    _component_names(point) != _component_names(job.points[0]) for point in points
                ):
                    raise _violation("it gave points of one curve with different components")
                news = news or bool(points)
                job.on_progress(job.name, points)
        return news

    async def _take_saved(self, event: Saved) -> bool:
        """Keep the state of a training that runs. Whether it is a later one than the last."""
        job = self.jobs.get(event.job)
        if job is not None and job.snapshots is not None and event.iterations == len(job.points):
            await self._keep(job, event.snapshot, job.snapshots)
            before, self._saved[event.job] = self._saved[event.job], event.iterations
            return event.iterations > before
        self._drop(event.snapshot)
        return False

    def _drop(self, *files: str) -> None:
        """Forget files that nobody needs."""
        if self._client is not None:
            for name in files:
                self._client.inbox.drop(name)

    async def _keep(self, job: TrainingJob, snapshot: str, store: SnapshotStore) -> None:
        """Store a state that the worker wrote. Its points go first: a state without them would be
        of no use."""
        store.put_points(job.name, job.points)
        await self._take_file(snapshot, store.state_path(job.name), check_state)

    async def _take_trained(self, event: Trained) -> None:
        assert self._client is not None
        job = self.jobs.get(event.job)
        if job is None:  # taken back meanwhile
            self._drop(*event.policies.values())
            return
        known = range(len(event.outcome.checkpoints))
        if (
            event.outcome.best_checkpoint not in event.policies
            or len(event.policies) > MOST_POLICIES
            or not all(checkpoint in known for checkpoint in event.policies)
        ):
            raise _violation(
                f"it gave the policies of checkpoints {str(sorted(event.policies)[:5])[:100]} "
                f"for an outcome at {str(event.outcome.best_checkpoint)[:100]} of {len(known)}"
            )
        policies = {
            checkpoint: await self._take_policy(name, f"{job.order[1]}-{checkpoint}")
            for checkpoint, name in event.policies.items()
        }
        self._finish(event.job, event.outcome, policies)

    async def _take_policy(self, name: str, as_name: str) -> Path:
        """Move a policy that the worker wrote out of its reach."""
        destination = self._scratch / "policies" / f"{as_name}.safetensors"
        await self._take_file(name, destination, check_policy)
        return destination

    async def _take_file(self, name: str, destination: Path, check: Callable[[Path], None]) -> None:
        assert self._client is not None
        try:
            await self._client.inbox.take(name, destination, check)
        except WorkerFileError as error:
            raise _violation(error.message, error.hint) from None

    def _finish(
        self,
        key: str,
        outcome: Outcome | None,
        policies: Mapping[int, Path] | None = None,
        failure: tuple[str, str] = ("", ""),
    ) -> None:
        job = self.jobs.pop(key, None)
        if job is not None:
            points, timers = tuple(job.points), dict(self._timers)
            job.resolve(
                TrainingResult(outcome, points, policies or {}, *failure, job.retries, timers)
            )


def _component_names(point: CurvePoint) -> tuple[set[str], ...]:
    return {*point.components}, {*point.component_magnitudes}, {*point.component_deviations}


def _violation(what: str, hint: str = DO_NOT_TRUST) -> WorkerDiedError:
    return WorkerDiedError(f"the worker broke the protocol: {what}", hint)
