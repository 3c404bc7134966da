"""Trainings of a command environment: `Train` commands become jobs, the jobs' events those of any
training."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from eureka_agent.array_files import COMMAND_POLICY
from eureka_agent.boundary import events
from eureka_agent.boundary.commands import Prepare, Train
from eureka_agent.errors import EnvironmentFaultError, EurekaError
from eureka_agent.records import CheckpointRecord, CurvePoint, Outcome
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation import command_events as told
from eureka_agent.simulation.command_job import (
    CommandDiedError,
    CommandJob,
    RewardFaultError,
    TrainerFaultError,
    UserCommand,
)
from eureka_agent.worker.channel import File

_COUNT = "points"
"""Name of a state's tensor with the number of curve points before it."""
_SAVE_SECONDS = 3.5
"""Longest wait for states that were asked for: Ctrl-C has five seconds."""
_POLL_SECONDS = 0.1


def wrapped(content: bytes, **numbers: int) -> bytes:
    """A command's file as safetensors, as all policies and states are."""
    arrays = {COMMAND_POLICY: np.frombuffer(content, np.uint8)}
    return save({**arrays, **{name: np.array([each]) for name, each in numbers.items()}})


@dataclass
class _Training:
    """A training of the running job."""

    command: Train
    points: int = 0
    """Curve points so far, also those before its saved state."""
    bucket: int = -1
    """Number of the update that the last point belongs to, by its env steps."""
    seen: list[CurvePoint] = field(default_factory=list)
    """Points of this process."""
    began: float = field(default_factory=time.monotonic)


class CommandPopulation:
    """Counterpart of `TrainedPopulation`: up to `can.rewards` trainings in a process at a time."""

    def __init__(
        self, command: UserCommand, settings: Prepare, slots: int, device: str, folder: Path
    ) -> None:
        """`slots`: trainings of one process. `folder`: holds the driver's files."""
        self._command = command
        self._settings: TrainingSettings = settings.settings
        self._snapshot_s = settings.snapshot_s
        self._slots, self._device, self._folder = slots, device, folder
        self._waiting: deque[Train] = deque()
        self._running: dict[str, _Training] = {}
        """Trainings of the job by their id there."""
        self._job: CommandJob | None = None
        self._fault: EnvironmentFaultError | None = None
        self._files_made = 0

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running or self._job)

    def submit(self, command: Train) -> list[events.TrainingFailed]:
        """Queue a training."""
        self._waiting.append(command)
        return []

    def cancel(self, job: str) -> None:
        """Drop a queued or running training; does nothing for an unknown one."""
        self._waiting = deque(each for each in self._waiting if each.job != job)
        for name, each in list(self._running.items()):
            if each.command.job == job:
                del self._running[name]
                if self._job is not None and self._running:
                    self._job.request(f"cancel-{name}")
        if not self._running:
            self.close()

    def save(self) -> list[events.Event | File]:
        """Ask for the states of all running trainings, and wait a little for them."""
        found: list[events.Event | File] = []
        if self._job is None:
            return found
        self._job.request("save")
        missing, deadline = set(self._running), time.monotonic() + _SAVE_SECONDS
        while missing & set(self._running) and time.monotonic() < deadline:
            answers = self.iterate()
            jobs = {each.job for each in answers if isinstance(each, events.Saved)}
            missing -= {name for name, it in self._running.items() if it.command.job in jobs}
            found += answers
            if self._job is None:
                break
        return found

    def iterate(self) -> list[events.Event | File]:
        """Pass on what the job told since the last call, after a short wait. Raises EurekaError
        for a fault that is no reward's; then the job is over."""
        if self._job is None:
            if not self._waiting:
                return []
            self._begin()
        assert self._job is not None
        answers: list[events.Event | File] = []
        try:
            if self._fault is not None:
                raise self._fault
            found, ended = self._job.poll(_POLL_SECONDS)
            for each in found:
                answers += self._answers(each)
            if not self._running:
                self.close()
            elif ended:
                self._job.check_end()
                raise self._job.unfinished("`trained` for every training")
        except CommandDiedError as error:
            self._running.clear()
            self.close()
            # all of its trainings go on in another worker, from their saved states
            return [*answers, events.Fault(job=None, message=error.message, hint=error.hint)]
        except EnvironmentFaultError as error:
            if answers:  # a training may have ended just before
                self._fault = error
                return answers
            self._fault = None
            self._running.clear()
            self.close()
            raise
        except EurekaError as error:
            code = "raised" if isinstance(error, RewardFaultError) else "fault"
            failed = [self._failure(each, code, str(error)) for each in self._running.values()]
            self._running.clear()
            self.close()
            return [*answers, *failed]
        return answers

    # ── a job ─────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(self._slots, len(self._waiting)))]
        files: dict[str, bytes] = {}
        trainings = []
        for number, command in enumerate(taken):
            name = str(number)
            training = self._running[name] = _Training(command)
            files[f"reward-{name}.py"] = command.reward.source.encode()
            state = None
            if command.snapshot is not None:
                path = self._folder / command.snapshot
                arrays = load_file(path)
                path.unlink(missing_ok=True)
                state = f"resumed-{name}"
                files[state] = arrays[COMMAND_POLICY].tobytes()
                training.points = int(arrays[_COUNT][0])
                training.bucket = int(arrays["bucket"][0])
            asked = {"id": name, "reward": f"reward-{name}.py", "seed": command.seed}
            trainings.append({**asked, "state": state, "rungs": list(command.rungs)})
        job = {
            "device": self._device,
            # those of one training do not depend on how many share the process
            "num_envs": self._settings.num_envs * len(taken),
            "env_steps": self._settings.env_steps,
            "save_every_s": self._snapshot_s,
            "trainings": trainings,
        }
        self._job = CommandJob(self._command, "train", job, files, self._folder)

    def close(self) -> None:
        """End the running job."""
        if self._job is not None:
            self._job.close()
            self._job = None

    def _answers(self, event: told.CommandEvent) -> list[events.Event | File]:
        assert self._job is not None
        training = self._running.get(getattr(event, "training", None) or "")
        if isinstance(event, told.FaultEvent) and (event.whose != "reward" or training is None):
            raise self._job.error_of(event)
        if training is None:  # cancelled, or of no mode of a training
            return []
        job = training.command.job
        match event:
            case told.FaultEvent():
                del self._running[event.training or ""]
                error = RewardFaultError(event.message, line=event.line)
                return [self._failure(training, "raised", str(error))]
            case told.CurveEvent():
                return self._progress(training, event)
            case told.RungEvent():
                name, file = self._file("policy", wrapped(self._job.file(event.policy)))
                if event.env_steps not in training.command.rungs:
                    return []
                reached = events.RungReached(job=job, env_steps=event.env_steps, policy=name)
                return [file, reached]
            case told.SavedEvent():
                numbers = {_COUNT: training.points, "bucket": training.bucket}
                content = wrapped(self._job.file(event.state), **numbers)
                name, file = self._file("snapshot", content)
                iterations = training.points
                return [file, events.Saved(job=job, snapshot=name, iterations=iterations)]
            case told.TrainedEvent():
                del self._running[event.training]
                return self._trained(training, event)
        return []

    def _progress(self, training: _Training, event: told.CurveEvent) -> list[events.Event | File]:
        """A curve point, at most one for each update's env steps."""
        bucket = event.env_steps // (self._settings.num_envs * self._settings.horizon)
        if bucket <= training.bucket or training.points >= self._settings.updates:
            return []
        training.bucket = bucket
        training.points += 1
        terms = event.terms.items()
        point = CurvePoint(
            env_steps=event.env_steps,
            fitness=event.fitness,
            episode_length=event.episode_length,
            episodes=event.episodes,
            reward=event.reward,
            components={name: each.mean for name, each in terms},
            component_magnitudes={name: each.magnitude for name, each in terms},
            component_deviations={name: each.deviation for name, each in terms},
            terminations=event.ends,
        )
        training.seen.append(point)
        return [events.CurvePoints(points={training.command.job: (point,)})]

    def _trained(self, training: _Training, event: told.TrainedEvent) -> list[events.Event | File]:
        """The outcome: checkpoints with the curve's numbers at their env steps."""
        assert self._job is not None
        if not training.seen:
            what = "the training ended without a `curve` event"
            raise TrainerFaultError(f"{what}{self._job.last_words()}", "tell at least one")
        stored = sorted(event.policies, key=lambda each: each.env_steps)
        stored = stored[-self._settings.kept_policies :]
        files, names = [], {}
        for place, each in enumerate(stored):
            names[place], file = self._file("policy", wrapped(self._job.file(each.policy)))
            files.append(file)
        checkpoints = tuple(_checkpoint(training.seen, each.env_steps) for each in stored)
        outcome = Outcome(
            env_steps=event.env_steps,
            seconds=time.monotonic() - training.began,
            checkpoints=checkpoints,
            best_checkpoint=len(stored) - 1,
            training_fitness=checkpoints[-1].fitness,
        )
        done = events.Trained(job=training.command.job, outcome=outcome, policies=names)
        return [*files, done]

    def _file(self, kind: str, content: bytes) -> tuple[str, File]:
        self._files_made += 1
        name = f"{kind}-{self._files_made}.safetensors"
        return name, File(name, content)

    def _failure(self, training: _Training, code: str, reason: str) -> events.TrainingFailed:
        reached = training.seen[-1].env_steps if training.seen else 0
        job = training.command.job
        return events.TrainingFailed(job=job, code=code, reason=reason, env_steps=reached)


def _checkpoint(points: list[CurvePoint], env_steps: int) -> CheckpointRecord:
    """The curve's last point up to these env steps, as a checkpoint."""
    found = [each for each in points if each.env_steps <= env_steps] or points[:1]
    point = found[-1]
    return CheckpointRecord(
        env_steps=env_steps,
        fitness=point.fitness,
        episode_length=point.episode_length,
        episodes=point.episodes,
        reward=point.reward,
        components=point.components,
    )
