"""Scores over seeds: mean, spread, and the human-normalised score."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eureka_agent.ranking import counted_on
from eureka_agent.records import BASELINES, Evaluation, FinalTraining, Score
from eureka_agent.report.comparison import told_apart


@dataclass(frozen=True)
class EpisodeStatistics:
    """Statistics of a policy's episodes."""

    mean: float
    std: float | None
    """Sample standard deviation (n − 1) over the episodes; None for a single one."""
    success_rate: float | None
    """Share of episodes that reach the task's threshold; None without one."""


def episode_statistics(evaluation: Evaluation, success_fitness: float | None) -> EpisodeStatistics:
    """Mean, spread and success rate of the evaluated episodes."""
    values = [episode.fitness for episode in evaluation.episodes]
    rate = None
    if success_fitness is not None:
        rate = sum(value >= success_fitness for value in values) / len(values)
    std = statistics.stdev(values) if len(values) > 1 else None
    return EpisodeStatistics(statistics.fmean(values), std, rate)


def score(name: str, trainings: Iterable[FinalTraining]) -> Score:
    """The score of one reward from its final trainings. Failed seeds are listed but have no part in
    mean and std."""
    named = (training for training in trainings if training.name == name)
    ordered = sorted(named, key=lambda training: training.seed)
    outcomes = {training.seed: training.outcome for training in ordered}
    found = score_of_seeds(
        name,
        {seed: None if each is None else each.fitness for seed, each in outcomes.items()},
    )
    cached = bool(ordered) and all(training.cached for training in ordered)
    card = cached and all(training.card for training in ordered)
    return found.model_copy(update={"cached": cached, "card": card})


def score_of_seeds(name: str, fitness: Mapping[int, float | None]) -> Score:
    """The score of one reward from its fitness by seed; None where a training failed."""
    known = [value for value in fitness.values() if value is not None]
    return Score(
        name=name,
        seeds=tuple(fitness),
        fitness=tuple(fitness.values()),
        mean=statistics.fmean(known) if known else None,
        std=statistics.stdev(known) if len(known) > 1 else None,
    )


def human_normalized(mean: float | None, human: float | None, sparse: float | None) -> float | None:
    """(mean − sparse) / |human − sparse| (Ma et al. 2023); None if one is unknown or they are
    equal."""
    if mean is None or human is None or sparse is None or human == sparse:
        return None
    return (mean - sparse) / abs(human - sparse)


def score_table(trainings: Sequence[FinalTraining]) -> tuple[Score, ...]:
    """Scores of all finalists, best first, then human and sparse, each with its human-normalised
    score. Finalists with as many seeds stand by what can be counted on (`eureka_agent.ranking`),
    those with fewer below them, since they could not win any more (`final.py`).

    There is none if human and sparse cannot be told apart: its unit would be noise.
    """
    names = dict.fromkeys(training.name for training in trainings)
    scores = {name: score(name, trainings) for name in names}
    human, sparse = (scores[name].mean if name in scores else None for name in BASELINES)
    known = human is not None and sparse is not None
    if known and not told_apart(scores["human"], scores["sparse"]):
        human = sparse = None
    normalized = [
        entry.model_copy(update={"human_normalized": human_normalized(entry.mean, human, sparse)})
        for entry in scores.values()
    ]
    finalists = [entry for entry in normalized if entry.name not in BASELINES]
    merits = counted_on([entry.fitness for entry in finalists])
    ordered = sorted(
        zip(finalists, merits, strict=True),
        key=lambda pair: (pair[0].mean is None, -len(pair[0].seeds), -pair[1], pair[0].name),
    )
    baselines = [entry for entry in normalized if entry.name in BASELINES]
    return tuple([entry for entry, _ in ordered] + baselines)
