"""The population that a worker trains: commands become members, results become events."""

from __future__ import annotations

import time
from pathlib import Path

from torch import Tensor

from eureka_agent.boundary import events
from eureka_agent.boundary.commands import GiveLabels, Prepare, Train
from eureka_agent.errors import RewardLoadError
from eureka_agent.label_records import MOST_WANTED
from eureka_agent.records import CurvePoint
from eureka_agent.rewards import MOST_OBSERVATIONS
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.user_modules import TimeLimitError
from eureka_agent.task import Task
from eureka_agent.training import trainer
from eureka_agent.training.members import load_snapshot, snapshot_bytes
from eureka_agent.training.policy import OBSERVATION, policy_bytes
from eureka_agent.worker.channel import File
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward

PROGRESS_SECONDS = 0.5
WANTED_SECONDS = 2.0
"""Interval between two messages on captions without labels."""


class TrainedPopulation:
    """A trainer's jobs as the protocol sees them."""

    def __init__(
        self,
        loaded: LoadedEnvironment,
        task: Task,
        command: Prepare,
        device: str,
        folder: Path,
        nursery: Nursery,
    ) -> None:
        """Make the trainer. `folder`: holds the commands' files. Raises EurekaError."""
        settings = command.settings
        self._environment_class = loaded.environment_class
        self._folder = folder
        self._nursery = nursery
        self._rewards: dict[str, RemoteReward] = {}
        self._rows = settings.num_envs * settings.horizon
        self._snapshot_s = command.snapshot_s
        self._designs = command.designs
        self._points: dict[str, list[CurvePoint]] = {}
        self._last_progress = self._last_snapshots = time.monotonic()
        self._last_wanted = -WANTED_SECONDS
        self._files_made = 0
        self._trainer = trainer.Trainer(
            lambda num_envs: loaded.make(task, num_envs, device=device),
            *(task, settings, command.slots, device),
            iteration_limit=command.iteration_limit_s,
            designed=MOST_OBSERVATIONS if command.designs else 0,
        )

    @property
    def busy(self) -> bool:
        return self._trainer.busy

    def submit(self, command: Train) -> list[events.TrainingFailed]:
        """Queue a training; return a fault of its reward. Raises RunFolderError."""

        def failed(code: str, reason: str) -> list[events.TrainingFailed]:
            return [events.TrainingFailed(job=command.job, code=code, reason=reason, env_steps=0)]

        try:
            asked = command.reward, self._rows
            reward = RemoteReward.on(self._environment_class, self._nursery, *asked)
            if reward.observation is not None and not self._designs:
                reward.close()
                what = "it designs an observation, and the training was asked for without one"
                return failed("contract", what)
        except RewardLoadError as error:
            return failed("contract", error.message)
        except TimeLimitError as error:
            return failed("timeout", f"loading it {error}")
        try:
            snapshot = None
            if command.snapshot is not None:
                path = self._folder / command.snapshot
                try:
                    snapshot = load_snapshot(path)
                finally:
                    path.unlink(missing_ok=True)
            more = snapshot, command.rungs, command.curriculum, command.reward.kind
            learns = command.label_method
            self._trainer.submit(command.job, reward, command.seed, *more, learns)
            self._trainer.give_labels(command.job, command.labels)
        except BaseException:
            reward.close()
            raise
        self._rewards[command.job] = reward
        return []

    def give_labels(self, command: GiveLabels) -> None:
        for job in command.jobs:
            self._trainer.give_labels(job, command.labels)

    def cancel(self, job: str) -> None:
        """Drop a queued or running training; does nothing for an unknown one."""
        self._points.pop(job, None)
        self._trainer.cancel(job)
        self._end(job)

    def _end(self, job: str) -> None:
        reward = self._rewards.pop(job, None)
        if reward is not None:
            reward.close()

    def iterate(self) -> list[events.Event | File]:
        """Train one iteration of every member; give progress at most every `PROGRESS_SECONDS`."""
        at_rungs: list[events.Event] = []
        ended: list[events.Event] = []
        files: list[File] = []
        for result in self._trainer.iterate():
            match result:
                case trainer.MemberProgress(job, point):
                    self._points.setdefault(job, []).append(point)
                case trainer.MemberFinished(job, outcome, policies):
                    names = {at: self._policy(job, each, files) for at, each in policies.items()}
                    ended.append(events.Trained(job=job, outcome=outcome, policies=names))
                case trainer.MemberAtRung(job, env_steps, policy):
                    name = self._policy(job, policy, files)
                    at_rungs.append(events.RungReached(job=job, env_steps=env_steps, policy=name))
                case trainer.MemberFailed(job, code, reason, env_steps):
                    end = {"code": code, "reason": reason, "env_steps": env_steps}
                    ended.append(events.TrainingFailed(job=job, **end))
            if isinstance(result, trainer.MemberFinished | trainer.MemberFailed):
                self._end(result.job)
        due = time.monotonic() - self._last_snapshots >= self._snapshot_s
        saved = self._saved(files) if due else []
        # points of a training come before its end, and before a snapshot that counts them; its
        # policy at a rung comes before a snapshot from which it would not come again
        late = time.monotonic() - self._last_progress >= PROGRESS_SECONDS
        progress = [self._progress()] if at_rungs or ended or saved or late else []
        return [*progress, *files, *at_rungs, *saved, *ended, *self._wanted()]

    def _wanted(self) -> list[events.LabelsWanted]:
        """Captions without labels of each training, if the last such message is long enough ago."""
        if time.monotonic() - self._last_wanted < WANTED_SECONDS:
            return []
        self._last_wanted = time.monotonic()
        wanted = self._trainer.wanted_labels(MOST_WANTED).items()
        return [events.LabelsWanted(job=job, captions=tuple(met)) for job, met in wanted if met]

    def save(self) -> list[events.Event | File]:
        """Save all running trainings, with the points that belong to their snapshots."""
        files: list[File] = []
        saved = self._saved(files)
        return [self._progress(), *files, *saved]

    def _policy(self, job: str, policy: dict[str, Tensor], files: list[File]) -> str:
        metadata, designed = self._trainer.policy_metadata, self._rewards[job].observation
        if designed is not None:
            metadata = {**metadata, OBSERVATION: designed.json()}
        return self._file("policy", policy_bytes(policy, metadata), files)

    def _file(self, kind: str, content: bytes, files: list[File]) -> str:
        self._files_made += 1
        name = f"{kind}-{self._files_made}.safetensors"
        files.append(File(name, content))
        return name

    def _saved(self, files: list[File]) -> list[events.Saved]:
        """Save all running trainings; none where the environment is not restorable."""
        if not self._trainer.restorable:
            return []
        snapshots = {job: self._trainer.snapshot(job) for job in self._trainer.running()}
        self._last_snapshots = time.monotonic()
        saved = []
        for job, each in snapshots.items():
            name = self._file("snapshot", snapshot_bytes(each), files)
            saved.append(events.Saved(job=job, snapshot=name, iterations=each.record.iterations))
        return saved

    def _progress(self) -> events.CurvePoints:
        points = {job: tuple(points) for job, points in self._points.items()}
        self._points.clear()
        self._last_progress = time.monotonic()
        return events.CurvePoints(points=points, timers=dict(self._trainer.timers))
