"""The population that a worker trains: commands become members, what the trainer gives becomes events."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from eureka_agent.errors import RewardLoadError
from eureka_agent.records import CurvePoint
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.task import Task
from eureka_agent.training.policy import save_policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.snapshot import Snapshot, load_snapshot, save_snapshot
from eureka_agent.training.time_limit import TimeLimitError, time_limit
from eureka_agent.training.trainer import MemberFinished, MemberPaused, MemberProgress, Trainer
from eureka_agent.worker.current_job import CurrentJob
from eureka_agent.worker.messages import Event, Paused, Progress, Saved, Train, Trained, TrainingFailed

PROGRESS_SECONDS = 0.5
LOADING_SECONDS = 5.0
"""What a reward's top level may take."""


class MarkedReward(RewardFunction):
    """A reward that leaves its job's name in the scratch folder while it runs."""

    current_job: CurrentJob
    job: str

    def __call__(self, values: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """See `RewardFunction`."""
        with self.current_job.marked(self.job):
            return super().__call__(values)


class Population:
    """A trainer's jobs as the protocol sees them."""

    def __init__(
        self,
        loaded: LoadedEnvironment,
        task: Task,
        settings: TrainingSettings,
        slots: int,
        device: str,
        scratch: Path,
        snapshot_s: float,
    ) -> None:
        """Makes the trainer. Raises EurekaError for an environment that cannot be made."""
        self._variables = loaded.environment_class.all_variables()
        self._scratch = scratch
        self._snapshot_s = snapshot_s
        self._current_job = CurrentJob(scratch)
        self._points: dict[str, list[CurvePoint]] = {}
        self._last_progress = self._last_snapshots = time.monotonic()
        self._policies_written = self._snapshots_written = 0
        self._trainer = Trainer(
            lambda num_envs: loaded.make(task, num_envs, device=device), task, settings, slots, device
        )

    @property
    def busy(self) -> bool:
        """True while a training runs or waits."""
        return self._trainer.busy

    def submit(self, command: Train) -> TrainingFailed | None:
        """Queue a training; the failure when its source cannot even be loaded. Raises RunFolderError for a broken snapshot."""
        try:
            with self._current_job.marked(command.job), time_limit(LOADING_SECONDS):
                reward = MarkedReward.from_source(command.source, self._variables, allow_private=command.trusted)
        except RewardLoadError as error:
            return TrainingFailed(job=command.job, code="contract", reason=error.message, env_steps=0)
        except TimeLimitError as error:
            return TrainingFailed(job=command.job, code="timeout", reason=f"loading it {error}", env_steps=0)
        snapshot = None if command.snapshot is None else load_snapshot(self._scratch / command.snapshot)
        assert isinstance(reward, MarkedReward)
        reward.current_job, reward.job = self._current_job, command.job
        self._trainer.submit(command.job, reward, command.seed, snapshot, command.pauses)
        return None

    def proceed(self, job: str) -> None:
        """Let a paused training go on; nothing happens to one that does not wait."""
        self._trainer.proceed(job)

    def cancel(self, job: str) -> None:
        """Drop a training, queued, paused or running; nothing happens to one that is not there."""
        self._points.pop(job, None)
        self._trainer.cancel(job)

    def iterate(self) -> Iterator[Event]:
        """Train one iteration of every member and say what came of it, progress at most every `PROGRESS_SECONDS`."""
        ended: list[Event] = []
        for result in self._trainer.iterate():
            if isinstance(result, MemberProgress):
                broken = _not_finite(result.point)
                if not broken:
                    self._points.setdefault(result.job, []).append(result.point)
                    continue
                self._trainer.cancel(result.job)
                ended.append(
                    TrainingFailed(
                        job=result.job,
                        code="not-a-number",
                        reason=f"{broken} became NaN or infinite",
                        env_steps=result.point.env_steps,
                    )
                )
            elif isinstance(result, MemberFinished):
                policies = {checkpoint: self._written(policy) for checkpoint, policy in result.policies.items()}
                ended.append(Trained(job=result.job, outcome=result.outcome, policies=policies))
            elif isinstance(result, MemberPaused):
                policy = self._written(result.policy)
                snapshot = self._kept(result.snapshot)
                ended.append(Paused(job=result.job, env_steps=result.env_steps, policy=policy, snapshot=snapshot))
            else:
                ended.append(
                    TrainingFailed(job=result.job, code=result.code, reason=result.reason, env_steps=result.env_steps)
                )
        saved = self._saved()
        # a job's points come before its end, and before a state that holds them
        if ended or saved or time.monotonic() - self._last_progress >= PROGRESS_SECONDS:
            yield self._progress()
        yield from saved
        yield from ended

    def _written(self, policy: dict[str, Tensor]) -> str:
        """Name of a new file with a policy."""
        self._policies_written += 1
        name = f"policy-{self._policies_written}.safetensors"
        save_policy(self._scratch / name, policy, self._trainer.policy_metadata)
        return name

    def _saved(self) -> list[Saved]:
        """States of all running trainings, when it is time again."""
        if not self._trainer.restorable or time.monotonic() - self._last_snapshots < self._snapshot_s:
            return []
        snapshots = {job: self._trainer.snapshot(job) for job in self._trainer.running()}
        self._last_snapshots = time.monotonic()
        return [
            Saved(job=job, snapshot=self._kept(snapshot), iterations=snapshot.record.iterations)
            for job, snapshot in snapshots.items()
        ]

    def _kept(self, snapshot: Snapshot) -> str:
        """Name of a new file with a state."""
        self._snapshots_written += 1
        name = f"snapshot-{self._snapshots_written}.safetensors"
        save_snapshot(self._scratch / name, snapshot)
        return name

    def _progress(self) -> Progress:
        points = {job: tuple(points) for job, points in self._points.items()}
        self._points.clear()
        self._last_progress = time.monotonic()
        return Progress(points=points, timers=dict(self._trainer.timers))


def _not_finite(point: CurvePoint) -> str:
    """Name of a field that JSON cannot carry; empty when there is none."""
    for name, value in point:
        numbers = value.values() if isinstance(value, dict) else (value,)
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            return name
    return ""
