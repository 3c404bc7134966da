"""One trial of a reward: train it, score its policy apart, leave the artefacts in a folder."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eureka_agent.archive.artefacts import CURVES, POLICY, TRAJECTORIES
from eureka_agent.archive.files import copy_file, write_file
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.errors import WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import PauseObserver
from eureka_agent.fleet.trainings import Trainings
from eureka_agent.journal.entries import Observer, TrainingEnded, TrainingKind, TrainingQueued
from eureka_agent.records import CurvePoint, Evaluation, Outcome
from eureka_agent.report.curves import write_curves_csv
from eureka_agent.report.tensorboard import FILE_PREFIX, write_event_file
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.inbox import WorkerFileError
from eureka_agent.search.scoring import episode_statistics
from eureka_agent.search.seeds import derive_seed


@dataclass(frozen=True)
class Trial:
    """What a trial gave: an outcome, or why there is none."""

    outcome: Outcome | None
    points: tuple[CurvePoint, ...]
    evaluation: Evaluation | None
    failure: str
    retries: int
    stopped: bool = False
    """At a pause, by whoever asked for the trial; `failure` says why."""


@dataclass(frozen=True)
class TrialRequest:
    """A reward to be tried."""

    label: str
    """Attempt id, `"human"` or `"sparse"`."""
    kind: TrainingKind
    reward: RewardSpecification
    seed: int
    folder: Path
    """Where curves, policy and trajectories go."""
    priority: int = 0
    """Smaller goes first."""
    pauses: tuple[int, ...] = ()
    """Env steps at which `on_pause` is asked whether it goes on."""
    on_pause: PauseObserver | None = None

    @property
    def job(self) -> str:
        """Name of the training, unique within the run."""
        return f"{self.label}@{self.seed}"


class TrialRunner:
    """Runs trials on a fleet."""

    def __init__(
        self,
        trainings: Trainings,
        evaluator: Evaluator,
        snapshots: SnapshotStore,
        evaluation_episodes: int,
        success_fitness: float | None,
        observer: Observer,
        scoring_episodes: int,
    ) -> None:
        """`evaluation_episodes` are what a fitness is the mean of, `scoring_episodes` what a choice
        between policies rests on."""
        self._trainings = trainings
        self._evaluator = evaluator
        self._snapshots = snapshots
        self._episodes = evaluation_episodes
        self._success_fitness = success_fitness
        self._observer = observer
        self._scoring_episodes = scoring_episodes

    async def run(self, request: TrialRequest) -> Trial:
        """Train and score one reward. What fails in training or scoring is part of the result; only
        a full disk and the like raise."""
        self._observer(
            TrainingQueued(
                job=request.job, label=request.label, training=request.kind, seed=request.seed
            )
        )
        result = await self._trainings.train(
            request.job,
            request.reward,
            request.seed,
            priority=request.priority,
            pauses=request.pauses,
            on_pause=request.on_pause,
        )
        points = tuple(result.points)
        if points:
            write_file(request.folder / CURVES, lambda draft: write_curves_csv(draft, points))
            events = request.folder / f"{FILE_PREFIX}.{request.label}"
            write_file(events, lambda draft: write_event_file(draft, points))
        stopped = result.failure_code == "stopped"
        trial = Trial(None, points, None, result.failure_reason, result.retries, stopped)
        if result.outcome is not None:
            outcome = await self._chosen(request, result.outcome, result.policies)
            copy_file(result.policies[outcome.best_checkpoint], request.folder / POLICY)
            trial = await self._score(request, outcome, trial)
        fitness = None if trial.outcome is None else trial.outcome.fitness
        self._observer(
            TrainingEnded(
                job=request.job,
                label=request.label,
                training=request.kind,
                fitness=fitness,
                failure=trial.failure,
            )
        )
        return trial

    async def _chosen(
        self, request: TrialRequest, outcome: Outcome, policies: Mapping[int, Path]
    ) -> Outcome:
        """The outcome with the checkpoint whose policy scores best without noise, from other start
        states than it will be valued on.

        The curve's best is a good part luck, and the episodes of an exploring policy say little of
        what it does without (benchmarks/LOG.md).
        """
        if len(policies) < 2:
            return outcome
        seed = derive_seed("selection", request.seed)
        checkpoints = sorted(policies)
        scores = await asyncio.gather(
            *(
                self.score(policies[checkpoint], seed, self._scoring_episodes)
                for checkpoint in checkpoints
            )
        )
        known = [
            (score.fitness_mean(), checkpoint)
            for checkpoint, score in zip(checkpoints, scores, strict=True)
            if score is not None
        ]
        _, best = max(known, default=(None, outcome.best_checkpoint))
        fitness = outcome.checkpoints[best].fitness
        return outcome.model_copy(update={"best_checkpoint": best, "training_fitness": fitness})

    async def score(
        self, policy: Path, seed: int, episodes: int, trajectories: Path | None = None
    ) -> Evaluation | None:
        """Episodes of a policy on its way, acting without noise; None when it cannot be scored.
        `trajectories`: where the worst and the best go."""
        try:
            return await self._evaluator.evaluate(policy, seed, episodes, trajectories)
        except (WorkerFaultError, WorkerDiedError, WorkerFileError):
            return None

    def settle(self, request: TrialRequest) -> None:
        """What came of a trial is in the archive: the states that its training was saved at are
        needed no more."""
        self._snapshots.drop(request.job)

    async def _score(self, request: TrialRequest, outcome: Outcome, trial: Trial) -> Trial:
        seed = derive_seed("evaluation", request.seed)
        try:
            evaluation = await self._evaluator.evaluate(
                request.folder / POLICY, seed, self._episodes, request.folder / TRAJECTORIES
            )
        except (WorkerFaultError, WorkerDiedError, WorkerFileError) as error:
            return replace(trial, failure=f"its policy could not be scored: {error.message}")
        return replace(
            trial, outcome=scored(outcome, evaluation, self._success_fitness), evaluation=evaluation
        )


def drop_files(request: TrialRequest) -> None:
    """Remove what a trial left in its folder: of one that counts nowhere."""
    for pattern in (CURVES, POLICY, TRAJECTORIES, f"{FILE_PREFIX}*"):
        for path in request.folder.glob(pattern):
            path.unlink(missing_ok=True)


def scored(outcome: Outcome, evaluation: Evaluation, success_fitness: float | None) -> Outcome:
    """The outcome with its evaluation's mean fitness, spread over episodes, success rate, and how
    the episodes ended."""
    episodes = episode_statistics(evaluation, success_fitness)
    return outcome.model_copy(
        update={
            "fitness": episodes.mean,
            "fitness_std": episodes.std,
            "success_rate": episodes.success_rate,
            "evaluation_episodes": len(evaluation.episodes),
            "ended_by": dict(Counter(episode.ended_by for episode in evaluation.episodes)),
        }
    )
