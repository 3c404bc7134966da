"""Trials: train a reward, score its policy apart, store the artefacts in a folder."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eureka_agent.archive.artefacts import CURVES, POLICY, PRACTICE, TRAJECTORIES
from eureka_agent.archive.files import copy_file, write_file
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.errors import WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.fleet import Trainings
from eureka_agent.fleet.jobs import TrainingResult
from eureka_agent.journal.entries import Observer, TrainingKind
from eureka_agent.journal.progress import TrainingEnded, TrainingQueued
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.records import CurvePoint, Evaluation, Outcome, ParameterStage
from eureka_agent.report.curve_log import CurveLog
from eureka_agent.report.curves import FILE_PREFIX, write_curves_csv, write_event_file
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.inbox import WorkerFileError
from eureka_agent.search.scoring import episode_statistics
from eureka_agent.search.seeds import derive_seed


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial, or the reason of its failure."""

    outcome: Outcome | None
    points: tuple[CurvePoint, ...]
    evaluation: Evaluation | None
    failure: str
    retries: int


@dataclass(frozen=True)
class TrialRequest:
    """A reward to train and score."""

    label: str
    """Attempt id, perhaps with a distribution (`2-03+d1`), `"human"` or `"sparse"`."""
    kind: TrainingKind
    reward: RewardSpecification
    seed: int
    folder: Path
    """Folder for curves, policy and trajectories."""
    priority: int = 0
    """Smaller starts first."""
    rungs: tuple[int, ...] = ()
    """Env steps at which `score_rung` gets the policy."""
    score_rung: Callable[[int, Path], Coroutine[Any, Any, None]] | None = None
    curriculum: tuple[ParameterStage, ...] = ()
    """Distributions of the environment's parameters; scores are under its defaults."""

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
        log: CurveLog | None = None,
    ) -> None:
        """A fitness is the mean over `evaluation_episodes`; a choice between policies rests on
        `scoring_episodes`."""
        self._trainings = trainings
        self._evaluator = evaluator
        self._snapshots = snapshots
        self._episodes = evaluation_episodes
        self._success_fitness = success_fitness
        self._observer = observer
        self._scoring_episodes = scoring_episodes
        self._log = log

    async def run(self, request: TrialRequest) -> Trial:
        """Train and score one reward. A failure of training or scoring is part of the result.
        Raises EurekaError for the driver's own errors, such as a full disk."""
        self._observer(
            TrainingQueued(
                job=request.job, label=request.label, training=request.kind, seed=request.seed
            )
        )
        result = await self._train(request)
        points = tuple(result.points)
        if points:
            write_file(request.folder / CURVES, lambda draft: write_curves_csv(draft, points))
            events = request.folder / f"{FILE_PREFIX}.{request.label}"
            write_file(events, lambda draft: write_event_file(draft, points))
            if self._log is not None:
                config = {"kind": str(request.kind), "seed": request.seed}
                self._log.add(request.job, {**config, "reward": request.reward.source}, points)
        trial = Trial(None, points, None, result.failure_reason, result.retries)
        if result.outcome is not None:
            outcome = await self._chosen(request, result.outcome, result.policies)
            copy_file(result.policies[outcome.best_checkpoint], request.folder / POLICY)
            trial = await self._score(request, outcome, trial)
        fitness = None if trial.outcome is None else trial.outcome.fitness
        self._observer(_ended(request, fitness, trial.failure))
        return trial

    async def _train(self, request: TrialRequest) -> TrainingResult:
        """Train the reward, and score its policies at rungs meanwhile."""
        scores: dict[int, asyncio.Task[None]] = {}

        def on_rung(env_steps: int, policy: Path) -> None:
            # a training that restarts comes to the same rung again
            if request.score_rung is not None and env_steps not in scores:
                scores[env_steps] = asyncio.create_task(request.score_rung(env_steps, policy))

        try:
            result = await self._trainings.train(
                request.job,
                request.reward,
                request.seed,
                priority=request.priority,
                rungs=request.rungs,
                on_rung=on_rung,
                curriculum=request.curriculum,
            )
            await asyncio.gather(*scores.values())
        finally:
            for score in scores.values():
                score.cancel()
        return result

    async def _chosen(
        self, request: TrialRequest, outcome: Outcome, policies: Mapping[int, Path]
    ) -> Outcome:
        """The outcome with the checkpoint whose policy scores best without noise, from other start
        states than those of its evaluation.

        The best checkpoint of the curve is largely luck, and an exploring policy's episodes tell
        little of the policy without noise (benchmarks/LOG.md). With a curriculum the last stage's
        distribution counts: under the defaults a policy that met little would win.
        """
        if len(policies) < 2:
            return outcome
        seed = derive_seed("selection", request.seed)
        checkpoints = sorted(policies)
        parameters = request.curriculum[-1].parameters if request.curriculum else DEFAULTS
        scores = await asyncio.gather(
            *(
                self.score(policies[checkpoint], seed, self._scoring_episodes, parameters)
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
        self,
        policy: Path,
        seed: int,
        episodes: int,
        parameters: Distribution = DEFAULTS,
        trajectories: Path | None = None,
    ) -> Evaluation | None:
        """The evaluation of a policy, perhaps under a distribution of the environment's parameters;
        None when it cannot be scored. `trajectories`: file for its worst and best episode."""
        try:
            return await self._evaluator.evaluate(
                policy, seed, episodes, trajectories, parameters=parameters
            )
        except (WorkerFaultError, WorkerDiedError, WorkerFileError):
            return None

    def withdraw(self, request: TrialRequest, reason: str, *, ended: bool) -> None:
        """Delete the files of a trial whose reward was rejected by its review; `ended`: its end was
        told."""
        for pattern in (CURVES, POLICY, PRACTICE, TRAJECTORIES, f"{FILE_PREFIX}*"):
            for path in request.folder.glob(pattern):
                path.unlink(missing_ok=True)
        if not ended:
            self._observer(_ended(request, None, f"turned down by its review: {reason}"))
        self.settle(request)

    def settle(self, request: TrialRequest) -> None:
        """Delete the saved states of a trial whose result is archived."""
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


def _ended(request: TrialRequest, fitness: float | None, failure: str) -> TrainingEnded:
    return TrainingEnded(
        job=request.job,
        label=request.label,
        training=request.kind,
        fitness=fitness,
        failure=failure,
    )


def scored(outcome: Outcome, evaluation: Evaluation, success_fitness: float | None) -> Outcome:
    """The outcome with its evaluation's mean fitness, spread, success rate and ends of episodes."""
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
