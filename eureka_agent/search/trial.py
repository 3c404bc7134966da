"""One trial of a reward: train it, score its policy apart, leave the artefacts in a folder."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.archive.artefacts import CURVES, POLICY, TRAJECTORIES, copy_file, write_file
from eureka_agent.records import CurvePoint, Evaluation, Outcome
from eureka_agent.report.curves import write_curves_csv
from eureka_agent.report.events import Observer, TrainingEnded, TrainingKind, TrainingQueued
from eureka_agent.report.tensorboard import write_event_file
from eureka_agent.sandbox.evaluator import Evaluator
from eureka_agent.sandbox.training_pool import TrainingPool
from eureka_agent.search.seeds import derive_seed


@dataclass(frozen=True)
class Trial:
    """What a trial gave: an outcome, or why there is none."""

    outcome: Outcome | None
    points: tuple[CurvePoint, ...]
    evaluation: Evaluation | None
    failure: str
    retries: int


@dataclass(frozen=True)
class TrialRequest:
    """A reward to be tried."""

    label: str
    """Attempt id, `"human"` or `"sparse"`."""
    kind: TrainingKind
    source: str
    seed: int
    folder: Path
    """Where curves, policy and trajectories go."""
    trusted: bool = False
    """True for the environment's own baselines: they may read private variables."""
    priority: int = 0
    """Smaller goes first."""

    @property
    def job(self) -> str:
        """Name of the training, unique within the run."""
        return f"{self.label}@{self.seed}"


class TrialRunner:
    """Runs trials on the training pool and the evaluator."""

    def __init__(
        self,
        pool: TrainingPool,
        evaluator: Evaluator,
        evaluation_episodes: int,
        success_fitness: float | None,
        observer: Observer,
    ) -> None:
        self._pool = pool
        self._evaluator = evaluator
        self._episodes = evaluation_episodes
        self._success_fitness = success_fitness
        self._observer = observer

    async def run(self, request: TrialRequest) -> Trial:
        """Train and score one reward. A candidate's own failure is part of the result; nothing of it raises."""
        self._observer(TrainingQueued(job=request.job, label=request.label, kind=request.kind, seed=request.seed))
        result = await self._pool.train(
            request.job, request.source, request.seed, trusted=request.trusted, priority=request.priority
        )
        points = tuple(result.points)
        if points:
            write_file(request.folder / CURVES, lambda draft: write_curves_csv(draft, points))
            write_event_file(request.folder, points, request.label)
        trial = Trial(None, points, None, result.failure_reason, result.retries)
        if result.outcome is not None and result.policy is not None:
            copy_file(result.policy, request.folder / POLICY)
            evaluation = await self._evaluator.evaluate(
                request.folder / POLICY,
                derive_seed("evaluation", request.seed),
                self._episodes,
                request.folder / TRAJECTORIES,
            )
            outcome = scored(result.outcome, evaluation, self._success_fitness)
            trial = Trial(outcome, points, evaluation, "", result.retries)
        fitness = None if trial.outcome is None else trial.outcome.fitness
        self._observer(
            TrainingEnded(
                job=request.job, label=request.label, kind=request.kind, fitness=fitness, failure=trial.failure
            )
        )
        return trial


def scored(outcome: Outcome, evaluation: Evaluation, success_fitness: float | None) -> Outcome:
    """The outcome with its evaluation's mean fitness, spread over episodes and success rate."""
    values = [episode.fitness for episode in evaluation.episodes]
    solved = None if success_fitness is None else sum(value >= success_fitness for value in values) / len(values)
    return outcome.model_copy(
        update={
            "fitness": statistics.fmean(values),
            "fitness_std": statistics.stdev(values) if len(values) > 1 else None,
            "success_rate": solved,
            "evaluation_episodes": len(values),
        }
    )
