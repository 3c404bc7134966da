"""One training worker and its jobs: its events become results, or the reason of its death."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from eureka_agent.boundary import events
from eureka_agent.boundary.commands import Cancel, GiveLabels, Prepare, Save
from eureka_agent.errors import WorkerDiedError
from eureka_agent.fleet.devices import Device
from eureka_agent.fleet.jobs import Population, TrainingJob, TrainingResult
from eureka_agent.label_records import CaptionLabel
from eureka_agent.records import CurvePoint, Outcome
from eureka_agent.sandbox.client import WorkerClient, raised_by, stuck
from eureka_agent.sandbox.inbox import DO_NOT_TRUST, WorkerFileError, check_policy, check_state
from eureka_agent.sandbox.wall import Limits, Wall

MOST_POLICIES = 100
_ITERATION_SHARE = 0.7
"""Share of the timeout for an iteration's steps, so that the worker can tell where it hangs."""


class TrainingWorker:
    """Trains jobs in one worker process until it dies or is closed."""

    def __init__(
        self, population: Population, wall: Wall, scratch: Path, limits: Limits, device: Device
    ) -> None:
        self.population = population
        self._wall = wall
        self._scratch = scratch
        self._limits = limits
        self.device = device
        self._client: WorkerClient | None = None
        self._timers: dict[str, float] = {}
        self._all_saved: asyncio.Future[None] | None = None
        """Done at the end of the answer to `Save`."""
        self._rungs_left: dict[str, set[int]] = {}
        """Rungs of each job of which no policy has come, in env steps."""
        self._saved: dict[str, int] = {}
        """Iterations in the last state of each job from this worker."""
        self.jobs: dict[str, TrainingJob] = {}
        """Jobs reserved or sent and without a result, by key."""
        self.ready = False

    @property
    def free_slots(self) -> int:
        return self.population.slots - len(self.jobs)

    async def start(self) -> None:
        """Start the process and make its population. Raises EurekaError where that fails."""
        population, problem, device = self.population, self.population.problem, self.device
        limits = replace(device.limit(self._limits), kernels=population.kernels)
        client = self._client = await WorkerClient.start(
            self._wall, self._scratch, limits, problem.environment
        )
        client.write_timeout_s = max(client.write_timeout_s, population.timeout_s)
        await client.open(
            problem.environment, problem.task, device.name_within, fitness=problem.fitness
        )
        await client.prepare(
            Prepare(
                settings=population.settings,
                slots=population.slots,
                designs=population.designs,
                snapshot_s=population.snapshot_s,
                iteration_limit_s=_ITERATION_SHARE * population.timeout_s,
            )
        )
        client.last_sign_of_life = time.monotonic()
        self.ready = True

    def reserve(self, job: TrainingJob) -> None:
        if not self.jobs and self._client is not None:  # the timeout begins with the first job
            self._client.last_sign_of_life = time.monotonic()
        self.jobs[job.key] = job
        self._rungs_left[job.key] = set(job.command.rungs)
        self._saved[job.key] = 0

    async def send(self, job: TrainingJob) -> None:
        """Send a reserved job to the worker, unless it was taken back, as it is at its death."""
        client, command = self._client, job.command
        if client is None or self.jobs.get(job.key) is not job:
            return
        if job.state is not None:
            name = f"resumed-{job.order[1]}.safetensors"
            await client.give(job.state, name)
            command = command.model_copy(update={"snapshot": name})
            if self.jobs.get(job.key) is not job:
                return
        if job.labels is not None:  # the last thing, since later ones follow by themselves
            known = {"labels": job.labels.known, "label_method": job.labels.method}
            command = command.model_copy(update=known)
        await client.send(command)

    async def give_labels(
        self, jobs: Collection[TrainingJob], labels: tuple[CaptionLabel, ...]
    ) -> None:
        """Send labels for those of these jobs that it has."""
        keys = tuple(each.key for each in jobs if self.jobs.get(each.key) is each)
        if keys and self.ready and self._client is not None:
            await self._client.send(GiveLabels(jobs=keys, labels=labels))

    async def cancel(self, job: TrainingJob) -> None:
        del self.jobs[job.key]
        if self.ready and self._client is not None:
            await self._client.send(Cancel(job=job.key))

    async def save(self) -> None:
        if self._client is None or not self.ready:
            return
        self._all_saved = asyncio.get_running_loop().create_future()
        await self._client.send(Save())
        await self._all_saved

    async def serve(self, on_slot_free: Callable[[], None]) -> None:
        """Turn events into results. Leaves unfinished jobs in `jobs` and raises WorkerDiedError
        when the worker ends or makes no progress within the timeout, EnvironmentFaultError when the
        environment's own code fails."""
        assert self._client is not None
        client, timeout_s = self._client, self.population.timeout_s
        while True:
            silence = time.monotonic() - client.last_sign_of_life if self.jobs else 0.0
            event: events.Event | None = None
            with contextlib.suppress(TimeoutError):
                event = await client.receive(max(0.05, timeout_s - silence))
            if event is not None and await self._take(client, event, on_slot_free):
                client.last_sign_of_life = time.monotonic()
            elif self.jobs and time.monotonic() - client.last_sign_of_life >= timeout_s:
                await client.kill()
                environment = self.population.problem.environment
                if (error := stuck(client.last_words(), timeout_s, environment)) is not None:
                    raise error
                raise WorkerDiedError(
                    f"the worker gave no sign of life for {timeout_s:g} s and was killed",
                    "free the machine of other work, or raise --training-timeout",
                )

    async def close(self) -> None:
        self._mark_all_saved()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _mark_all_saved(self) -> None:
        if self._all_saved is not None and not self._all_saved.done():
            self._all_saved.set_result(None)

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    async def _take(
        self, client: WorkerClient, event: events.Event, on_slot_free: Callable[[], None]
    ) -> bool:
        """Handle an event. True if a job made progress by it: a sign of life."""
        if isinstance(event, events.Fault) and (event.job is None or event.environment):
            raise raised_by(event, WorkerDiedError, self.population.problem.environment)
        match event:
            case events.CurvePoints():
                return self._take_progress(event)
            case events.Saved():
                return await self._take_saved(client, event)
            case events.RungReached():
                await self._take_rung(client, event)
                return False
            case events.LabelsWanted():
                job = self.jobs.get(event.job)
                if job is not None and job.labels is not None:
                    job.labels.want(event.captions)
                return False
            case events.AllSaved():
                self._mark_all_saved()
                return False
            case events.Trained(job=key):
                progress = key in self.jobs
                await self._take_trained(client, event)
            case events.TrainingFailed(job=key):
                progress = self._finish(key, None, failure=(event.code, event.reason))
            case events.Fault(job=str() as key):
                progress = self._finish(key, None, failure=("fault", event.message))
            case _:
                return False
        on_slot_free()
        return progress

    def _take_progress(self, event: events.CurvePoints) -> bool:
        """Add curve points; True for a new one. Raises WorkerDiedError for too many."""
        self._timers = event.timers
        progress = False
        for name, points in event.points.items():
            job = self.jobs.get(name)
            if job is None:
                continue
            if len(job.points) + len(points) > self.population.settings.updates:
                raise _violation("it gave more points of a curve than the training has iterations")
            job.points += points
            if any(_component_names(point) != _component_names(job.points[0]) for point in points):
                raise _violation("it gave points of one curve with different components")
            progress = progress or bool(points)
            job.on_progress(job.name, points)
        return progress

    async def _take_saved(self, client: WorkerClient, event: events.Saved) -> bool:
        """Store the state of a training. True if it is later than the last one."""
        job = self.jobs.get(event.job)
        if job is None or job.snapshots is None or event.iterations != len(job.points):
            client.inbox.drop(event.snapshot)
            return False
        # after its points, since a state is of no use without them
        job.snapshots.put_points(job.name, job.points)
        await _store(client, event.snapshot, job.snapshots.state_path(job.name), check_state)
        before, self._saved[event.job] = self._saved[event.job], event.iterations
        return event.iterations > before

    async def _take_rung(self, client: WorkerClient, event: events.RungReached) -> None:
        """Pass on a policy at a rung, stored where a resumed search finds it. Raises
        WorkerDiedError for one that nobody asked for."""
        job = self.jobs.get(event.job)
        if job is None or job.on_rung is None:  # cancelled
            client.inbox.drop(event.policy)
            return
        if event.env_steps not in self._rungs_left[event.job]:
            steps = str(event.env_steps)[:100]
            raise _violation(f"it gave a policy at {steps} env steps, which is no rung")
        self._rungs_left[event.job].discard(event.env_steps)
        policy = self._policy_path(job, f"rung-{event.env_steps}")
        if job.snapshots is not None:
            policy = job.snapshots.rung_path(job.name, event.env_steps)
        await _store(client, event.policy, policy, check_policy)
        if self.jobs.get(event.job) is job:  # not cancelled meanwhile
            job.on_rung(event.env_steps, policy)

    async def _take_trained(self, client: WorkerClient, event: events.Trained) -> None:
        """Move the policies of a finished training out of the worker's reach."""
        job, outcome = self.jobs.get(event.job), event.outcome
        if job is None:  # cancelled
            for name in event.policies.values():
                client.inbox.drop(name)
            return
        known, given = range(len(outcome.checkpoints)), event.policies
        if (
            outcome.best_checkpoint not in given
            or len(given) > MOST_POLICIES
            or not all(checkpoint in known for checkpoint in given)
        ):
            raise _violation(
                f"it gave the policies of checkpoints {str(sorted(given)[:5])[:100]} for an outcome"
                f" at {str(outcome.best_checkpoint)[:100]} of {len(known)}"
            )
        policies = {place: self._policy_path(job, str(place)) for place in given}
        for place, name in given.items():
            await _store(client, name, policies[place], check_policy)
        self._finish(event.job, outcome, policies)

    def _policy_path(self, job: TrainingJob, suffix: str) -> Path:
        return self._scratch / "policies" / f"{job.order[1]}-{suffix}.safetensors"

    def _finish(
        self,
        key: str,
        outcome: Outcome | None,
        policies: Mapping[int, Path] | None = None,
        failure: tuple[str, str] = ("", ""),
    ) -> bool:
        """Give a job its result; False for an unknown one."""
        job = self.jobs.pop(key, None)
        if job is None:
            return False
        points, timers = tuple(job.points), dict(self._timers)
        job.resolve(TrainingResult(outcome, points, policies or {}, *failure, job.retries, timers))
        return True


def _component_names(point: CurvePoint) -> tuple[set[str], ...]:
    return {*point.components}, {*point.component_magnitudes}, {*point.component_deviations}


async def _store(
    client: WorkerClient, name: str, destination: Path, check: Callable[[Path], None]
) -> None:
    """Move a file from the worker's inbox. Raises WorkerDiedError for an invalid one."""
    try:
        await client.inbox.take(name, destination, check)
    except WorkerFileError as error:
        raise _violation(error.message, error.hint) from None


def _violation(what: str, hint: str = DO_NOT_TRUST) -> WorkerDiedError:
    return WorkerDiedError(f"the worker broke the protocol: {what}", hint)
